/* pages.c - a reservation of which a part is used, given back and used again
 *
 * After each step it tells what of its mapping is in use, reserved and given back, in pages, once
 * the kernel has said the same of it.  A line on stdin has it go on.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>

#include "sample.h"

/* Pages: primes, that no other sum comes out the same. */
enum {
	ALL = 1009,
	FIRST = 101, /* accessible from this one on, */
	USED = 211,  /* so many */
	BACK = 53,   /* given back, from the 7th of them on; */
	AGAIN = 17,  /* used again, from the 11th of those on */
	GUARD = 29,  /* made inaccessible, the last ones of those used: they keep their memory */
	PAGE = 4096,
};

struct state {
	unsigned long in_use, reserved, given_back;
};

static char *base;

static void fail(const char *what)
{
	say("failed: %s\n", what);
	_exit(1);
}

static void wait_for_line(void)
{
	char c = 0;

	while (c != '\n' && read(STDIN_FILENO, &c, 1) == 1)
		;
}

static unsigned long resident_pages(void)
{
	static unsigned char there[ALL];
	unsigned long nr = 0;

	if (mincore(base, (size_t)ALL * PAGE, there))
		fail("mincore");
	for (int i = 0; i < ALL; i++)
		nr += there[i] & 1;
	return nr;
}

/* Kilobytes of what cannot be accessed, less what of it is resident. */
static unsigned long inaccessible_kb(const char *line)
{
	unsigned long start, end, size = 0, rss, sum = 0;
	char perms[8] = "";

	for (; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, perms) == 3) {
			if (start < (unsigned long)base ||
			    end > (unsigned long)base + (unsigned long)ALL * PAGE)
				perms[0] = '?';
		} else if (sscanf(line, "Size: %lu", &size) != 1 &&
			   sscanf(line, "Rss: %lu", &rss) == 1 && !strncmp(perms, "---p", 4)) {
			sum += size - rss;
		}
	}
	return sum;
}

static unsigned long reserved_pages(void)
{
	static char text[1 << 18];
	size_t len = 0;
	ssize_t got;
	int fd = open("/proc/self/smaps", O_RDONLY);

	while ((got = read(fd, text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)got;
	text[len] = '\0';
	if (got < 0 || !len)
		fail("smaps");
	close(fd);
	return inaccessible_kb(text) * 1024 / PAGE;
}

static void tell(const struct state *s)
{
	if (resident_pages() != s->in_use || reserved_pages() != s->reserved)
		fail("the kernel says something else");
	say("pages: in_use=%lu reserved=%lu given_back=%lu\n", s->in_use, s->reserved,
	    s->given_back);
}

FRAME void reserve(struct state *s)
{
	base = mmap(NULL, (size_t)ALL * PAGE, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		fail("mmap");
	s->reserved = ALL;
	AFTER_CALL();
}

static void use(struct state *s)
{
	char *first = base + FIRST * PAGE;

	if (mprotect(first, USED * PAGE, PROT_READ | PROT_WRITE))
		fail("mprotect");
	memset(first, 1, USED * PAGE);
	if (mprotect(first + (USED - GUARD) * PAGE, GUARD * PAGE, PROT_NONE))
		fail("mprotect");
	s->reserved -= USED;
	s->in_use += USED;
}

static void give_back(struct state *s)
{
	if (madvise(base + (FIRST + 7) * PAGE, BACK * PAGE, MADV_DONTNEED))
		fail("madvise");
	s->in_use -= BACK;
	s->given_back += BACK;
}

static void use_again(struct state *s)
{
	memset(base + (FIRST + 7 + 11) * PAGE, 1, AGAIN * PAGE);
	s->in_use += AGAIN;
	s->given_back -= AGAIN;
}

int main(void)
{
	static void (*const steps[])(struct state *) = {reserve, use, give_back, use_again};
	struct state s = {0};

	say("ready\n");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		wait_for_line();
		steps[i](&s);
		tell(&s);
	}
	wait_for_line();
	return 0;
}
