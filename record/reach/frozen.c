/* frozen.c - see frozen.h */
#include "record/reach/frozen.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/base/proc.h"
#include "record/target/pages.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* linux/mman.h of 5.14 */
#endif

#define SPARE (16u << 20) /* bytes that may come until it has stopped, besides an eighth */

/* The number in the file that @format names; UINT64_MAX: none. */
#define read_number(...) parse_number(proc_read(text, sizeof(text), __VA_ARGS__) ? text : "")

static uint64_t parse_number(const char *text)
{
	uint64_t value;

	return sscanf(text, "%" SCNu64, &value) == 1 ? value : UINT64_MAX;
}

/* What the cgroup of this process may still use.  The file system of cgroups is where all have it.
 */
static uint64_t cgroup_room(void)
{
	char text[512], group[60] = "";
	uint64_t most, used;
	const char *at;

	proc_read(text, sizeof(text), "/proc/self/cgroup");
	at = strstr(text, "0::/");
	if (!at || sscanf(at, "0::%59s", group) != 1)
		return UINT64_MAX;
	most = read_number("/sys/fs/cgroup%s/memory.max", group);
	used = read_number("/sys/fs/cgroup%s/memory.current", group);
	if (most == UINT64_MAX || used == UINT64_MAX)
		return UINT64_MAX;
	return most > used ? most - used : 0;
}

/* Bytes that may be taken without harm to others. */
static uint64_t most_room(void)
{
	char text[4096];
	const char *at;
	uint64_t room = cgroup_room(), available;

	proc_read(text, sizeof(text), "/proc/meminfo");
	at = strstr(text, "MemAvailable:");
	available = parse_number(at ? at + 13 : "");
	if (available < UINT64_MAX >> 10 && available << 10 < room)
		room = available << 10;
	return room / 2;
}

static int count_pages(int pagemap, const struct mlk_range *ranges, size_t nr, uint64_t *bytes)
{
	struct pages *pages = calloc(1, sizeof(*pages));
	uint64_t from, to;
	int more = 0;

	*bytes = 0;
	if (!pages)
		return -ENOMEM;
	pages->fd = pagemap;
	for (size_t i = 0; i < nr && more >= 0; i++) {
		pages_begin(pages, ranges[i].start);
		while ((more = pages_next(pages, ranges[i].end, &from, &to)) > 0)
			*bytes += to - from;
	}
	free(pages);
	return more;
}

/* Have all pages of the file now, and not while the process stands still; huge ones where shared
 * memory may have them.  Returns 0 or -errno. */
static int populate(const struct frozen *f)
{
	void *at;
	bool done;

	if (ftruncate(f->fd, (off_t)f->room))
		return -errno;
	at = mmap(NULL, f->room, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	madvise(at, f->room, MADV_HUGEPAGE);
	done = !madvise(at, f->room, MADV_POPULATE_WRITE);
	munmap(at, f->room);
	return done || !fallocate(f->fd, 0, 0, (off_t)f->room) ? 0 : -errno;
}

int frozen_prepare(struct frozen *f, int pagemap, const struct mlk_range *ranges, size_t nr)
{
	uint64_t bytes;
	int err = count_pages(pagemap, ranges, nr, &bytes);

	if (err)
		return err;
	f->room = (FREEZE_DATA + bytes + bytes / 8 + SPARE + 4095) & ~UINT64_C(4095);
	if (f->room > most_room())
		return -EFBIG;
	f->fd = memfd_create("mleak-frozen", MFD_CLOEXEC);
	return f->fd < 0 ? -errno : populate(f);
}

int frozen_take(struct frozen *f, const struct target *t)
{
	const struct helper_task of = {.pid = t->pid, .task = t->task};
	int err = t->helper ? helper_freeze(t->helper, &of, f->fd, f->room)
			    : freeze_take(t, f->fd, f->room);
	struct stat st;
	void *at;

	if (err)
		return err;
	if (fstat(f->fd, &st))
		return -errno;
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, f->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	f->at = at;
	f->bytes = (size_t)st.st_size;
	f->header = at;
	f->runs = (const void *)((const char *)at + f->header->runs_at);
	f->nr_runs = f->header->nr_runs;
	return 0;
}

int frozen_maps(const struct frozen *f, struct maps *maps)
{
	char *text = malloc(f->header->maps_bytes);
	int err = -ENOMEM;

	if (text) {
		memcpy(text, (const char *)f->at + f->header->maps_at, f->header->maps_bytes);
		maps_clear(maps);
		err = maps_parse(maps, text);
	}
	free(text);
	return err;
}

const struct mlk_reach_thread *frozen_threads(const struct frozen *f, size_t *nr)
{
	*nr = f->header->nr_threads;
	return (const void *)((const char *)f->at + f->header->threads_at);
}

void frozen_release(struct frozen *f)
{
	if (f->at)
		munmap(f->at, f->bytes);
	if (f->fd >= 0)
		close(f->fd);
	*f = (struct frozen){.fd = -1};
}
