/* sample.h - what all samples share: frames and blocks that the compiler keeps, and their answers
 *
 * A sample must have no unfreed block but those it tells of, so nothing here allocates: neither
 * stdio's buffer nor the one that dprintf() takes for each call.
 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function that has a frame of its own under its own name: not inlined, cloned or merged. */
#define FRAME __attribute__((noinline, noipa))

/* Work after a call: without it the compiler makes it a jump, and the caller's frame is gone. */
#define AFTER_CALL() __asm__ volatile("" : : : "memory")

/* Number and size of most leaks.  Primes: no other sum of the program comes out the same. */
enum { LEAK_BLOCKS = 23, LEAK_BYTES = 47 };

/* What one call path leaked, counted while it happens. */
struct leak_sum {
	unsigned long blocks;
	unsigned long bytes;
};

/* Let @block look used: the compiler removes an allocation whose result nobody sees. */
static inline void keep(void *block)
{
	__asm__ volatile("" : : "r"(block) : "memory");
}

/* Count the leaked @block of @bytes in @sum, unless the allocation failed. */
static inline void leak_add(struct leak_sum *sum, void *block, size_t bytes)
{
	keep(block);
	if (!block)
		return;
	sum->blocks++;
	sum->bytes += bytes;
}

/* Write to stdout at once, at most 1 KiB a call. */
__attribute__((format(printf, 1, 2))) static inline void say(const char *format, ...)
{
	char text[1024];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (len >= (int)sizeof(text))
		len = sizeof(text) - 1;
	if (len < 0 || write(STDOUT_FILENO, text, len) != len)
		_exit(99);
}

/* Print the answer line for @path; "*" as a component of it stands for any number of frames. */
static inline void answer(const struct leak_sum *sum, const char *path)
{
	say("answer: blocks=%lu bytes=%lu path=%s\n", sum->blocks, sum->bytes, path);
}

/* Path of the file @name beside this program in @out; "" when it does not fit. */
static inline void path_beside(char *out, size_t out_bytes, const char *name)
{
	char exe[1024];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	int used;

	exe[len < 0 ? 0 : len] = '\0';
	char *slash = strrchr(exe, '/');
	if (slash)
		*slash = '\0';
	used = snprintf(out, out_bytes, "%s/%s", exe, name);
	if (used < 0 || (size_t)used >= out_bytes)
		out[0] = '\0';
}

#endif
