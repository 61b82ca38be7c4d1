/* say.h - for programs that count their allocations: print without memory of its own */
#ifndef TESTS_SAY_H
#define TESTS_SAY_H

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Like printf(), at most 511 bytes: stdio would allocate. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
	char text[512];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (write(STDOUT_FILENO, text, (size_t)len) != len)
		_exit(99);
}

#endif
