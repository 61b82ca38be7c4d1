/* compare.c - unwind what sampler.c saved, and compare with what libgcc said at that moment
 *
 * usage: compare [--reduced] FILE...
 *
 * Frame by frame, from the one that called the sampler outwards: the pc, and whether it is a return
 * address.  A frame counts where the saved bytes suffice to find it; beyond, what is found must be
 * libgcc's all the same.  Only a stack whose end libgcc reached may be complete, and it has to be.
 *
 * Prints the first differences, and last a line of NAME=NUMBER.  Exit status: 0 when all is equal,
 * 1 when not, 2 when a file cannot be read.
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/exact/exact.h"
#include "tests/exact/modules.h"
#include "tests/unwind_once.h"

#define MAX_FRAMES 40000
#define MAX_SHOWN  5

struct counts {
	uint64_t stacks;
	uint64_t frames;    /* of libgcc, where the bytes suffice */
	uint64_t equal;	    /* of these */
	uint64_t truncated; /* stacks whose bytes do not suffice to their end */
	uint64_t no_cfi;    /* stacks that libgcc could not follow to their end */
	uint64_t complete;  /* stacks, as we see it */
	uint64_t different; /* stacks */
	uint64_t digest;    /* of all that was found */
};

/* What libgcc said of one stack. */
struct answer {
	const struct exact_sample *sample;
	const struct exact_frame *frame;
	uint32_t nr;	  /* frames with a pc */
	uint32_t covered; /* of these, as many as the bytes suffice for */
	bool ended;	  /* the outermost frame was reached */
	bool whole;	  /* the bytes suffice to see so */
};

/* What we say of it. */
struct finding {
	struct dwunw_frame frame[MAX_FRAMES];
	uint32_t nr;
	enum dwunw_status status;
};

static bool is_within(const struct exact_sample *s, const struct exact_frame *f)
{
	return f->sp - s->stack_addr <= s->stack_len;
}

/* A frame is found by the bytes below its sp, but one that a signal interrupted by the registers
 * that the kernel put on the handler's stack.  The sp that libgcc tells of one that longjmp() is
 * about to go to is the address of the buffer; that of its caller is one again. */
static bool covers(const struct answer *a, uint32_t frame)
{
	const struct exact_frame *f = &a->frame[frame];

	return f->interrupted || is_within(a->sample, f) ||
	       (frame + 1 < a->sample->nr_frames && is_within(a->sample, f + 1));
}

static struct answer answer_read(const struct exact_sample *s)
{
	struct answer a = {.sample = s, .frame = (const struct exact_frame *)(s + 1)};

	a.nr = s->nr_frames;
	a.ended = a.nr && !a.frame[a.nr - 1].pc;
	a.nr -= a.ended;
	while (a.covered < a.nr && covers(&a, a.covered))
		a.covered++;
	a.whole = a.covered == a.nr && (!a.ended || covers(&a, a.nr));
	return a;
}

/* Each stack twice: the second time it is known, and the short way is taken. */
static void unwind(struct dwunw_space *space, const struct answer *a, struct finding *f)
{
	static struct finding first;
	const struct exact_sample *s = a->sample;
	const uint8_t *bytes = (const uint8_t *)(a->frame + s->nr_frames);
	const struct dwunw_stack stack = {s->stack_addr, bytes, s->stack_len};
	struct dwunw_regset regs;
	int nr;

	if (dwunw_regset_prepare(&regs, s->regs, DWUNW_MAX_ARCH_REGS,
				 s->flags & EXACT_CUT ? DWUNW_EVENT_STACK_LIMIT : 0))
		errx(2, "the unwinder refuses the registers");
	nr = unwind_once(space, PLAIN_SAMPLE(&regs, &stack), first.frame, MAX_FRAMES,
			 &first.status);
	if (nr < 1)
		errx(2, "cannot unwind: %s", dwunw_strerror(nr));
	f->nr = (uint32_t)nr;
	if (unwind_once(space, PLAIN_SAMPLE(&regs, &stack), f->frame, MAX_FRAMES, &f->status) !=
		    nr ||
	    f->status != first.status || memcmp(f->frame, first.frame, f->nr * sizeof(f->frame[0])))
		errx(2, "a stack comes out in two ways");
}

/* Code that nothing called, such as makecontext() puts below a coroutine, is where we say that a
 * stack is complete, and no return address; to libgcc it is one without information. */
static bool is_uncalled(const struct answer *a, const struct finding *f, uint32_t i)
{
	return !a->ended && i + 1 == a->nr && i + 1 == f->nr && f->status == DWUNW_STATUS_ENDED &&
	       f->frame[i].flags == DWUNW_FRAME_FLAG_UNCALLED;
}

/* Frame 0 is the sampler's own function: its pc moves on between the saving and libgcc. */
static bool frame_equal(const struct answer *a, const struct finding *f, uint32_t i)
{
	const uint32_t called = DWUNW_FRAME_FLAG_RETURN | DWUNW_FRAME_FLAG_SIGNAL;

	if (i >= f->nr || i >= a->nr)
		return false;
	return !i || (f->frame[i].pc == a->frame[i].pc &&
		      (!(f->frame[i].flags & called) == !!a->frame[i].interrupted ||
		       is_uncalled(a, f, i)));
}

static bool status_right(const struct answer *a, const struct finding *f)
{
	if (a->sample->flags & EXACT_FRAME_LIMIT)
		return true;
	if (!a->whole)
		return f->status == DWUNW_STATUS_TRUNCATED || f->status == DWUNW_STATUS_BAD_MEMORY;
	if (a->ended)
		return f->status == DWUNW_STATUS_ENDED;
	/* Code without information: nothing can have called it from beyond the end of the stack. */
	return f->status == DWUNW_STATUS_NO_CFI || f->status == DWUNW_STATUS_ENDED;
}

static void show(const struct exact_modules *m, const struct answer *a, const struct finding *f,
		 uint32_t first)
{
	char place[512];

	printf("stack of %" PRIu32 " bytes, %" PRIu32 " of %" PRIu32
	       " frames covered, %s; found %" PRIu32 " frames, %s; first difference at %" PRIu32
	       "\n",
	       a->sample->stack_len, a->covered, a->nr, a->ended ? "ended" : "not ended", f->nr,
	       dwunw_status_text(f->status), first);
	for (uint32_t i = first > 4 ? first - 4 : 0; i < first + 4; i++) {
		if (i < a->nr) {
			exact_modules_place(m, a->frame[i].pc, place, sizeof(place));
			printf("  %" PRIu32 " libgcc %s sp=0x%" PRIx64 "%s\n", i, place,
			       a->frame[i].sp - a->sample->stack_addr,
			       a->frame[i].interrupted ? " interrupted" : "");
		}
		if (i < f->nr) {
			exact_modules_place(m, f->frame[i].pc, place, sizeof(place));
			printf("  %" PRIu32 " dwunw  %s flags=%" PRIu32 "\n", i, place,
			       f->frame[i].flags);
		}
	}
}

static void digest(struct counts *c, const struct finding *f)
{
	for (uint32_t i = 0; i < f->nr; i++) {
		const struct dwunw_frame *frame = &f->frame[i];

		c->digest = (c->digest ^ frame->pc) * 0x100000001b3u;
		c->digest = (c->digest ^ frame->addr) * 0x100000001b3u;
		c->digest =
			(c->digest ^ frame->flags ^ (uint64_t)frame->module << 32) * 0x100000001b3u;
	}
	c->digest = (c->digest ^ f->status) * 0x100000001b3u;
}

static void compare(const struct exact_modules *m, struct dwunw_space *space,
		    const struct exact_sample *sample, struct counts *c)
{
	static struct finding f;
	const struct answer a = answer_read(sample);
	uint32_t found = 0, equal = 0;

	unwind(space, &a, &f);
	found = f.nr > a.covered ? f.nr : a.covered;
	while (equal < found && frame_equal(&a, &f, equal))
		equal++;
	c->stacks++;
	c->frames += a.covered;
	c->equal += equal < a.covered ? equal : a.covered;
	c->truncated += !a.whole;
	c->no_cfi += a.whole && !a.ended;
	c->complete += f.status == DWUNW_STATUS_ENDED;
	digest(c, &f);
	if (equal == found && status_right(&a, &f))
		return;
	if (c->different++ < MAX_SHOWN)
		show(m, &a, &f, equal);
}

static void read_record(struct exact_modules *m, struct dwunw_space **space,
			const struct exact_record *record, struct counts *c)
{
	switch (record->type) {
	case EXACT_VDSO:
		m->vdso = record + 1;
		m->vdso_len = record->len;
		break;
	case EXACT_MAPS:
		dwunw_space_free(*space);
		*space = exact_modules_space(m, (const char *)(record + 1), record->len);
		break;
	case EXACT_SAMPLE:
		if (!*space)
			errx(2, "a sample before any mapping");
		compare(m, *space, (const struct exact_sample *)(record + 1), c);
		break;
	default:
		errx(2, "unknown record");
	}
}

static void read_file(struct exact_modules *m, const char *path, struct counts *c)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct dwunw_space *space = NULL;
	const struct exact_record *record;
	const uint8_t *at;
	struct stat st;
	size_t left;

	if (fd < 0 || fstat(fd, &st))
		err(2, "cannot read '%s'", path);
	/* It stays mapped: the unwinder borrows the vdso in it. */
	at = mmap(NULL, (size_t)st.st_size + 1, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		err(2, "cannot map '%s'", path);
	close(fd);
	for (left = (size_t)st.st_size; left >= sizeof(*record);
	     left -= sizeof(*record) + record->len) {
		record = (const struct exact_record *)at;
		if (left - sizeof(*record) < record->len)
			break; /* the program ended while it wrote */
		if (record->len % 8)
			errx(2, "'%s': a record is not aligned", path);
		read_record(m, &space, record, c);
		at += sizeof(*record) + record->len;
	}
	dwunw_space_free(space);
}

int main(int argc, char **argv)
{
	static struct exact_modules modules;
	bool reduced = argc > 1 && !strcmp(argv[1], "--reduced");
	struct counts c = {0};

	exact_modules_init(&modules, reduced);
	for (int i = 1 + reduced; i < argc; i++)
		read_file(&modules, argv[i], &c);
	printf("stacks=%" PRIu64 " frames=%" PRIu64 " equal=%" PRIu64 " truncated=%" PRIu64
	       " no_cfi=%" PRIu64 " complete=%" PRIu64 " different=%" PRIu64 " digest=%016" PRIx64
	       "\n",
	       c.stacks, c.frames, c.equal, c.truncated, c.no_cfi, c.complete, c.different,
	       c.digest);
	return c.different != 0;
}
