/* memleak.c - show which stacks of a process allocate what they do not free: memleak PID SECONDS
 *
 * A program of its own that uses libdwunw as it is installed: events come from its own BPF program,
 * and are unwound as they arrive.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <bpf/libbpf.h>
#include <dwunw.h>

#include "event.h"
#include "memleak.skel.h"

#define MAX_MAPS   4096
#define MAX_FRAMES 64
#define LISTS	   65536

struct block {
	struct block *next;
	uint64_t addr, size;
	uint32_t stack; /* its id */
};

static struct block *live[LISTS]; /* blocks not freed, by address */
static size_t nr_live;
static struct dwunw *dw;
static struct dwunw_space *space;
static char libc[512]; /* its path */

/* Add the file at @path.  Its mapping stays: the library borrows it. */
static uint32_t module_of(const char *path)
{
	uint32_t module = DWUNW_NO_MODULE;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *image = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st))
		image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image != MAP_FAILED)
		dwunw_module_add(dw, &module, path, image, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	return module;
}

/* Make the space from what is mapped now.  Libraries that are loaded later stay unknown. */
static int read_maps(const char *pid)
{
	static struct dwunw_mapping maps[MAX_MAPS];
	char line[1024], path[512], perms[5];
	struct dwunw_mapping m = {0};
	size_t nr = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/maps", pid);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	while (fgets(line, sizeof(line), f) && nr < MAX_MAPS) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %511[^\n]",
			   &m.start, &m.end, perms, &m.file_offset, path) != 5 ||
		    perms[2] != 'x' || path[0] != '/')
			continue;
		m.module = module_of(path);
		maps[nr++] = m;
		if (strstr(path, "/libc.so.6"))
			memcpy(libc, path, sizeof(libc));
	}
	fclose(f);
	return dwunw_space_new(&space, dw, maps, nr);
}

/* Forget the block at @addr, which was freed; or its free was lost, and it is given out anew. */
static void drop_block(uint64_t addr)
{
	struct block **at = &live[addr / 16 % LISTS], *b;

	while (*at && (*at)->addr != addr)
		at = &(*at)->next;
	b = *at;
	if (!b)
		return;
	*at = b->next;
	free(b);
	nr_live--;
}

static int handle_event(void *unused, void *data, size_t len)
{
	const struct event *e = data;
	const struct dwunw_async_event *c = &e->capture;
	const struct dwunw_stack stack = {c->sp, c->stack_bytes, c->stack_size};
	uint64_t regs[DWUNW_MAX_ARCH_REGS];
	struct dwunw_regset regset;
	const struct dwunw_sample sample = {&regset, &stack, UINT64_MAX, NULL, UINT64_MAX, 0};
	struct dwunw_result result;
	struct block *b;
	int err;

	(void)unused;
	(void)len;
	drop_block(e->addr);
	if (e->is_free)
		return 0;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	memcpy(regs, c->regs_snapshot, sizeof(regs));
	dwunw_regset_prepare(&regset, regs, DWUNW_MAX_ARCH_REGS, c->flags);
	err = dwunw_capture(space, &sample, NULL, 0, &result);
	if (err) {
		free(b);
		return err;
	}
	b->stack = result.id;
	b->addr = e->addr;
	b->size = e->size;
	b->next = live[e->addr / 16 % LISTS];
	live[e->addr / 16 % LISTS] = b;
	nr_live++;
	return 0;
}

static int by_stack(const void *a, const void *b)
{
	const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;

	return (x->stack > y->stack) - (x->stack < y->stack);
}

static void print_stack(uint32_t id, size_t blocks, uint64_t bytes)
{
	struct dwunw_frame frames[MAX_FRAMES];
	struct dwunw_symbol names[MAX_FRAMES];
	size_t nr = dwunw_stack_frames(dw, id, frames, MAX_FRAMES);

	printf("%" PRIu64 " bytes in %zu blocks, stack %s:\n", bytes, blocks,
	       dwunw_status_text(dwunw_stack_status(dw, id)));
	if (dwunw_symbol_resolve_batch(dw, frames, nr, names))
		return;
	for (size_t i = 0; i < nr; i++)
		printf("    %#018" PRIx64 " %s %s:%u\n", frames[i].pc,
		       names[i].function ? names[i].function : "?",
		       names[i].file ? names[i].file : "?", names[i].line);
}

static void print_leaks(void)
{
	struct block **all = calloc(nr_live + 1, sizeof(*all));
	size_t nr = 0;

	for (size_t i = 0; all && i < LISTS; i++)
		for (struct block *b = live[i]; b; b = b->next)
			all[nr++] = b;
	if (nr)
		qsort(all, nr, sizeof(*all), by_stack);
	for (size_t i = 0, next; i < nr; i = next) {
		uint64_t bytes = 0;

		for (next = i; next < nr && !by_stack(&all[i], &all[next]); next++)
			bytes += all[next]->size;
		print_stack(all[i]->stack, next - i, bytes);
	}
	free(all);
}

static int attach(struct bpf_program *prog, pid_t pid, const char *function, bool at_return)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .func_name = function, .retprobe = at_return);

	/* The link lasts as long as this program. */
	return bpf_program__attach_uprobe_opts(prog, pid, libc, 0, &opts) ? 0 : -errno;
}

static int watch(struct memleak *bpf, pid_t pid, time_t seconds)
{
	struct ring_buffer *ring =
		ring_buffer__new(bpf_map__fd(bpf->maps.events), handle_event, NULL, NULL);
	time_t end = time(NULL) + seconds;
	/* free() first: else a block could be seen made, and not freed. */
	int err = !ring || attach(bpf->progs.free_entry, pid, "free", false) ||
		  attach(bpf->progs.malloc_return, pid, "malloc", true) ||
		  attach(bpf->progs.malloc_entry, pid, "malloc", false);

	if (!err)
		fprintf(stderr, "watching process %d\n", (int)pid);
	while (!err && time(NULL) < end)
		err = ring_buffer__poll(ring, 100) < 0;
	err = err ? -errno : 0;
	ring_buffer__free(ring);
	return err;
}

int main(int argc, char **argv)
{
	struct memleak *bpf = NULL;
	int err;

	if (argc != 3) {
		fprintf(stderr, "usage: memleak PID SECONDS\n");
		return 2;
	}
	err = dwunw_new(&dw);
	err = err ? err : dwunw_debug_dir_add(dw, "/usr/lib/debug");
	err = err ? err : read_maps(argv[1]);
	if (!err)
		bpf = memleak__open_and_load();
	if (!err)
		err = bpf ? watch(bpf, (pid_t)strtol(argv[1], NULL, 10), strtol(argv[2], NULL, 10))
			  : -errno;
	if (err)
		fprintf(stderr, "memleak: cannot watch process '%s': %s\n", argv[1],
			dwunw_strerror(err));
	else
		print_leaks();
	if (!err && bpf->bss->lost)
		printf("%" PRIu64 " events lost\n", (uint64_t)bpf->bss->lost);
	memleak__destroy(bpf);
	dwunw_space_free(space);
	dwunw_free(dw);
	return err != 0;
}
