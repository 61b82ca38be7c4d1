/* reach_trace.c - writes a trace of processes with many blocks and pointers, to measure reports
 * with
 *
 * usage: reach_trace FILE PROCESSES BLOCKS POINTERS PASSES
 *
 * Each process has BLOCKS blocks, and its memory POINTERS words that point to blocks, in each of
 * PASSES passes.  Three of four blocks hang on one word of data, as a tree, the others on another
 * one; the other words point anywhere among the same.  The last hundredth of the blocks is lost.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "format/writer.h"

#define BASE	UINT64_C(0x7f0000000000)
#define DATA	UINT64_C(0x500000000000)
#define SPACING 112
#define SIZE	96
#define START	1000000000

struct shape {
	uint32_t tgid;
	uint64_t blocks, pointers, parts[4]; /* parts: where those begin that hang on one root */
};

static uint64_t seed = 11;

static uint64_t random_below(uint64_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 24) % limit;
}

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "reach_trace: %s: %d\n", what, err);
	exit(1);
}

static void write_blocks(struct mlk_writer *w, const struct shape *s)
{
	static const uint8_t stack[64];
	struct mlk_event event = {.kind = MLK_ALLOC,
				  .func = MLK_FUNC_MALLOC,
				  .nr_regs = 17,
				  .tgid = s->tgid,
				  .tid = s->tgid,
				  .size = SIZE,
				  .stack = stack,
				  .stack_len = sizeof(stack)};

	event.regs[MLK_SP_REG] = UINT64_C(0x7ffe00000000);
	for (uint64_t i = 0; i < s->blocks; i++) {
		event.time_ns = START + i;
		event.addr = BASE + i * SPACING;
		event.alloc_id = s->tgid * s->blocks + i;
		event.regs[16] = 0x400000 + i % 64 * 16; /* as many stacks */
		check(mlk_writer_event(w, &event), "event");
	}
}

/* Words that are kept until there are as many as a chunk has. */
struct words {
	struct mlk_writer *w;
	struct mlk_pointers chunk;
	struct mlk_pointer all[MLK_MAX_POINTERS];
	uint64_t nr;
};

static void flush_words(struct words *words)
{
	if (words->chunk.nr)
		check(mlk_writer_pointers(words->w, &words->chunk, START), "words");
	words->chunk.nr = 0;
}

static void put_word(struct words *words, uint64_t address, uint64_t value)
{
	words->all[words->chunk.nr++] = (struct mlk_pointer){address, value};
	words->nr++;
	if (words->chunk.nr == MLK_MAX_POINTERS)
		flush_words(words);
}

/* Word @k of block @i of the part from @from to @to: to one of its two children, or to any. */
static uint64_t target(uint64_t from, uint64_t to, uint64_t i, uint64_t k)
{
	uint64_t child = from + 2 * (i - from) + 1 + k;

	if (k > 1 || child >= to)
		child = from + random_below(to - from);
	return BASE + child * SPACING;
}

static void write_pass(struct mlk_writer *w, const struct shape *s, uint32_t number, bool last)
{
	const struct mlk_range ranges[] = {
		{.start = DATA, .end = DATA + 4096, .perms = 3, .path = "/program"},
		{.start = BASE, .end = BASE + s->blocks * SPACING, .perms = 3, .path = ""}};
	static struct words words;
	struct mlk_pass pass = {.tgid = s->tgid,
				.pass = number,
				.snapshot = 1,
				.flags = last ? MLK_PASS_LAST : 0,
				.begin_ns = START + s->blocks + number * 100,
				.end_ns = START + s->blocks + number * 100 + 50,
				.nr_ranges = 2,
				.ranges = ranges};

	words.w = w;
	words.nr = 0;
	words.chunk = (struct mlk_pointers){.tgid = s->tgid, .pass = number, .words = words.all};
	for (int part = 0; part < 2; part++)
		put_word(&words, DATA + 64 * (uint64_t)part, BASE + s->parts[part] * SPACING);
	for (int part = 0; part < 3; part++)
		for (uint64_t i = s->parts[part]; i < s->parts[part + 1]; i++)
			for (uint64_t k = 0; k < s->pointers / s->blocks; k++)
				put_word(&words, BASE + i * SPACING + k * 8,
					 target(s->parts[part], s->parts[part + 1], i, k));
	flush_words(&words);
	pass.words = words.nr;
	check(mlk_writer_pass(w, &pass), "pass");
}

int main(int argc, char **argv)
{
	const struct mlk_meta meta = {.command = "program",
				      .exe = "/program",
				      .comm = "program",
				      .hostname = "",
				      .kernel = "",
				      .machine = "x86_64",
				      .recorder = "reach_trace",
				      .backend = "bpf",
				      .tgid = 100,
				      .start_ns = START,
				      .whole_life = 1};
	uint64_t values[4], lost;
	struct mlk_writer *w;
	int fd;

	if (argc != 6)
		return 2;
	for (int i = 0; i < 4; i++)
		values[i] = strtoull(argv[2 + i], NULL, 10);
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || !values[1])
		return 2;
	check(mlk_writer_open(&w, fd, &meta, 1), "open");
	for (uint64_t i = 0; i < values[0]; i++) {
		struct shape s = {
			.tgid = 100 + (uint32_t)i, .blocks = values[1], .pointers = values[2]};

		lost = s.blocks - s.blocks / 100;
		s.parts[1] = s.blocks * 3 / 4;
		s.parts[2] = lost;
		s.parts[3] = s.blocks;
		write_blocks(w, &s);
		for (uint64_t pass = 0; pass < values[3]; pass++)
			write_pass(w, &s, (uint32_t)pass + 1, pass + 1 == values[3]);
	}
	check(mlk_writer_finish(w, MLK_END_EXITED, START + 2 * values[1]), "finish");
	mlk_writer_free(w);
	return close(fd) ? 1 : 0;
}
