/* log.c - messages of the code under test: to stderr, as mleak.c has them, without its main() */
#include "mleak.h"

#include <stdarg.h>
#include <stdio.h>

static void log_line(const char *prefix, const char *fmt, va_list args)
{
	fputs(prefix, stderr);
	vfprintf(stderr, fmt, args);
	fputc('\n', stderr);
}

void log_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line("error: ", fmt, args);
	va_end(args);
}

void log_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line("warning: ", fmt, args);
	va_end(args);
}

void log_info(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_line("", fmt, args);
	va_end(args);
}
