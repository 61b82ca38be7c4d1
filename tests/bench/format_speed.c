/* format_speed.c - how fast traces are written and read, without kernel, target or unwinder
 *
 * Writes synthetic events as fast as the writer takes them, to a file: half of them allocations
 * with a stack of so many bytes, of which a few words change each time, and half frees.  Then reads
 * them back. A recorder that gets fewer events than this a second loses none to the writer.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "format/reader.h"
#include "format/writer.h"

#define TOP	0x7ffd00000000ull
#define CODE	0x55aa00000000ull
#define THREADS 4

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static uint64_t rnd(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* Change the stack as a program does that calls one function or another, and passes other data. */
static void change(uint8_t *stack, size_t len, uint64_t *random)
{
	for (int i = 0; i < 4; i++) {
		uint64_t r = rnd(random), word = r % 3 ? CODE + r % 500 * 64 : r;
		size_t at = (size_t)(r >> 32) % (i ? len / 8 : 16) * 8;

		memcpy(stack + at, &word, sizeof(word));
	}
}

static void write_events(struct mlk_writer *w, uint64_t nr, size_t len)
{
	static uint8_t stacks[THREADS][65536];
	uint64_t random = 1;

	for (uint64_t i = 0; i < nr; i++) {
		unsigned int t = (unsigned int)(i / 2 % THREADS);
		struct mlk_event ev = {.kind = i % 2 ? MLK_FREE : MLK_ALLOC,
				       .tgid = 100,
				       .tid = 100 + t,
				       .time_ns = 1000 * i,
				       .addr = CODE + i / 2 * 64};

		if (ev.kind == MLK_ALLOC) {
			change(stacks[t], len, &random);
			ev.func = MLK_FUNC_MALLOC;
			ev.size = 48;
			ev.alloc_id = i / 2 + 1;
			ev.nr_regs = 17;
			ev.regs[MLK_SP_REG] = TOP + t * 1048576 - len;
			ev.regs[16] = CODE + random % 100 * 16;
			ev.stack = stacks[t];
			ev.stack_len = (uint32_t)len;
		}
		if (mlk_writer_event(w, &ev))
			exit(1);
	}
}

static void measure(const char *path, uint64_t nr, size_t len)
{
	const struct mlk_mapping code = {
		.start = CODE, .end = CODE + 65536, .perms = MLK_PERM_X, .path = "/code"};
	const struct mlk_meta meta = {.tgid = 100, .stack_mode = MLK_STACK_FILTERED};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct mlk_writer *w;
	struct mlk_reader *r;
	struct mlk_record rec;
	uint64_t got = 0, bytes;
	double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), read_cpu;

	if (fd < 0 || mlk_writer_open(&w, fd, &meta, 1))
		exit(1);
	mlk_writer_set_code(w, &code, 1);
	write_events(w, nr, len);
	if (mlk_writer_finish(w, MLK_END_EXITED, 0))
		exit(1);
	bytes = mlk_writer_bytes(w);
	mlk_writer_free(w);
	wall = seconds(CLOCK_MONOTONIC) - wall;
	cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	close(fd);

	read_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
	if (mlk_reader_open_file(&r, path))
		exit(1);
	while (mlk_reader_next(r, &rec) == 1)
		got += rec.type == MLK_RECORD_EVENT;
	mlk_reader_free(r);
	read_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - read_cpu;
	unlink(path);
	if (got != nr)
		exit(1);
	printf("%6zu B: written %.2f M events/s (%.2f us CPU an event, %.1f B on the file), read "
	       "%.2f M events/s "
	       "of CPU\n",
	       len, (double)nr / wall / 1e6, cpu * 1e6 / (double)nr, (double)bytes / (double)nr,
	       (double)nr / read_cpu / 1e6);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "format_speed.mlk";

	measure(path, 4000000, 320);
	measure(path, 2000000, 8192);
	return 0;
}
