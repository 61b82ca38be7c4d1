/* pages_target.c - maps, reserves, gives back and uses pages at random: for test_pages.py
 *
 * Its arguments are a seed, and whether what is reserved is moved, too.  All happens in an area of
 * 512 pages, of which it keeps account.  At the end it asks the kernel which of them are resident,
 * tells what it has, and waits for the end of its input.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 512, LONGEST = 24, STEPS = 1500 };
enum { ANON = MAP_PRIVATE | MAP_ANONYMOUS, RW = PROT_READ | PROT_WRITE };

/* What becomes of a page. */
enum use { NOTHING, USED, RESERVED, BACK, USES };

static char *base;
static enum use uses[PAGES];
static char is_open[PAGES]; /* it can be accessed */
static unsigned long state;

static int random_below(int n)
{
	state = state * 6364136223846793005ul + 1442695040888963407ul;
	return (int)((state >> 33) % (unsigned long)n);
}

static void *at(int page)
{
	return base + (size_t)page * PAGE;
}

static void set(int page, int nr, enum use use, int opened)
{
	for (int i = page; i < page + nr; i++) {
		uses[i] = use;
		is_open[i] = (char)opened;
		if (use == USED && opened)
			memset(at(i), 1, 1);
	}
}

/* Mapped pages from @page on, at most @most. */
static int mapped_run(int page, int most)
{
	int n = 0;

	while (page + n < PAGES && n < most && uses[page + n] != NOTHING)
		n++;
	return n;
}

static void map(int page, int nr, int prot)
{
	if (mmap(at(page), (size_t)nr * PAGE, prot, ANON | MAP_FIXED, -1, 0) == MAP_FAILED)
		exit(2);
	set(page, nr, prot ? USED : RESERVED, prot != 0);
}

static void open_up(int page, int nr)
{
	if (mprotect(at(page), (size_t)nr * PAGE, RW))
		exit(3);
	for (int i = page; i < page + nr; i++)
		set(i, 1, uses[i] == RESERVED ? USED : uses[i], 1);
}

static void shut(int page, int nr)
{
	if (mprotect(at(page), (size_t)nr * PAGE, PROT_NONE))
		exit(4);
	memset(is_open + page, 0, (size_t)nr);
}

static void give_back(int page, int nr)
{
	if (madvise(at(page), (size_t)nr * PAGE, MADV_DONTNEED))
		exit(5);
	for (int i = page; i < page + nr; i++)
		uses[i] = uses[i] == USED ? BACK : uses[i];
}

static void use_again(int page, int nr)
{
	for (int i = page; i < page + nr; i++)
		if (uses[i] == BACK && is_open[i])
			set(i, 1, USED, 1);
}

/* Pages like the first: the kernel moves only what is of one kind. */
static void move(int page, int nr, int to, int len)
{
	enum use use = uses[page];
	int opened = is_open[page];
	void *there;

	for (int i = page; i < page + nr; i++)
		if (uses[i] != use || is_open[i] != opened)
			return;
	if (use == BACK || opened != (use == USED) || abs(to - page) < LONGEST)
		return;
	there = mremap(at(page), (size_t)nr * PAGE, (size_t)len * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		       at(to));
	/* even where it fails, the pages that it would have taken the place of are gone */
	set(to, len, NOTHING, 0);
	munmap(there == MAP_FAILED ? at(to) : at(page), (size_t)(there == MAP_FAILED ? len : nr) * PAGE);
	if (there == MAP_FAILED)
		return;
	set(page, nr, NOTHING, 0);
	set(to, len, use, opened);
}

static void step(int moves_reserved)
{
	int page = random_below(PAGES - LONGEST), len = 1 + random_below(LONGEST);
	int run = mapped_run(page, len), to = random_below(PAGES - LONGEST);

	switch (random_below(9)) {
	case 0:
		map(page, len, RW);
		return;
	case 1:
		map(page, len, PROT_NONE);
		return;
	case 2:
		munmap(at(page), (size_t)len * PAGE);
		set(page, len, NOTHING, 0);
		return;
	case 3:
		if (run && (moves_reserved || uses[page] == USED))
			move(page, run, to, len);
		return;
	case 4:
		if (run)
			shut(page, run);
		return;
	case 5:
		use_again(page, len);
		return;
	case 6:
		if (run)
			give_back(page, run);
		return;
	default:
		if (run)
			open_up(page, run);
	}
}

int main(int argc, char **argv)
{
	unsigned char resident[PAGES];
	int sums[USES] = {0};
	char line[80];

	if (argc < 3)
		return 1;
	state = strtoul(argv[1], NULL, 10);
	base = mmap(NULL, (size_t)PAGES * PAGE, PROT_NONE, ANON | MAP_NORESERVE, -1, 0);
	memset(uses, 0, sizeof(uses));
	munmap(base, (size_t)PAGES * PAGE);
	for (int i = 0; i < STEPS; i++)
		step(atoi(argv[2]));
	for (int i = 0; i < PAGES; i++) {
		int is_mapped = !mincore(at(i), PAGE, &resident[i]);

		if (is_mapped != (uses[i] != NOTHING) ||
		    (is_mapped && (resident[i] & 1) != (uses[i] == USED)))
			return 6;
		sums[uses[i]]++;
	}
	if (write(1, line,
		  (size_t)snprintf(line, sizeof(line), "pages: in_use=%d reserved=%d given_back=%d\n",
				   sums[USED], sums[RESERVED], sums[BACK])) < 0)
		return 7;
	return read(0, line, 1) < 0;
}
