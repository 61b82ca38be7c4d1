/* go_program.c - see go_program.h */
#include "record/golang/go_program.h"

#include <string.h>
#include <unistd.h>

#include "mleak.h"
#include "record/module/go_table.h"
#include "unwind/golang/pclntab.h"

#define MAX_CODE 512 /* bytes of a function that are looked at */

/* A function while its code is looked through. */
struct code {
	const uint8_t *bytes;
	size_t len, at;
	uint64_t address; /* of the first byte, as the file counts it */
	struct dwunw_pcln_function function;
};

/* A file that is examined. */
struct examined {
	Elf *elf;
	struct dwunw_pclntab table;
	uint64_t bias; /* an address in the process, less that in the file */
};

/* Instructions, as Go's assembler writes them: each byte, or ANY. */
#define ANY	  (-1)
#define NR(array) (sizeof(array) / sizeof((array)[0]))

/* Go on to behind the next place with the bytes of @pattern, at most @most further; @value, if it
 * is wanted, is set to the bytes that any may be, which stand together.  False: there is none. */
static bool find_pattern(struct code *c, const int16_t *pattern, size_t nr, size_t most,
			 int32_t *value)
{
	for (size_t i = c->at; i + nr <= c->len && i - c->at <= most; i++) {
		uint8_t any[4] = {0};
		size_t k, found = 0;

		for (k = 0; k < nr && (pattern[k] == ANY || pattern[k] == c->bytes[i + k]); k++)
			if (pattern[k] == ANY && found < sizeof(any))
				any[found++] = c->bytes[i + k];
		if (k < nr)
			continue;
		if (value && found == 1)
			*value = (int8_t)any[0];
		else if (value)
			memcpy(value, any, sizeof(*value));
		c->at = i + nr;
		return true;
	}
	return false;
}

#define FIND(c, most, value, ...)                                         \
	({                                                                \
		static const int16_t pattern_[] = {__VA_ARGS__};          \
		find_pattern(c, pattern_, NR(pattern_), (most), (value)); \
	})

/* The code of @f. */
static bool open_code(const struct examined *e, const struct dwunw_pcln_function *f, struct code *c)
{
	size_t most = f->end - f->start < MAX_CODE ? (size_t)(f->end - f->start) : MAX_CODE;

	*c = (struct code){.address = f->start, .function = *f};
	c->bytes = elffile_bytes(e->elf, f->start, most, &c->len);
	return c->bytes != NULL;
}

static bool is_named(const struct dwunw_pcln_function *f, const char *name)
{
	return !strcmp(f->name, name);
}

/* Where the register of the thread's goroutine is, below the thread's control block. */
static bool read_tls(struct code *c, int32_t *tls)
{
	struct code from = *c;

	if (FIND(c, 24, tls, 0x64, 0x48, 0x8b, 0x3c, 0x25, ANY, ANY, ANY, ANY))
		return true; /* mov %fs:tls,%rdi */
	*c = from;
	return FIND(c, 24, tls, 0x48, 0xc7, 0xc1, ANY, ANY, ANY, ANY, /* mov $tls,%rcx */
		    0x64, 0x48, 0x8b, 0x39);			      /* mov %fs:(%rcx),%rdi */
}

/* Set *@offset to what is added to the stack pointer in the instruction at hand, of @op: with or
 * without a byte for it. */
static bool read_at_sp(struct code *c, uint8_t op, uint8_t reg, size_t most, int32_t *offset)
{
	const int16_t with[] = {0x48, op, 0x44 | reg << 3, 0x24, ANY};
	const int16_t without[] = {0x48, op, 0x04 | reg << 3, 0x24};

	if (find_pattern(c, with, NR(with), most, offset))
		return true;
	*offset = 0;
	return find_pattern(c, without, NR(without), most, NULL);
}

enum { RSI = 6, RDI = 7, STORE = 0x89, LOAD = 0x8b, SUBTRACT = 0x2b };

/* The way onto the other stack, up to what is noted there. */
static bool read_switch(struct code *c, struct go_program *g)
{
	int32_t m = 0, sp = 0, below = 0, at_g = 0, at_depth = 0, hi = 0;

	if (!read_tls(c, &g->capture.tls) ||
	    !FIND(c, 24, &m, 0x4c, 0x8b, 0x47, ANY) ||	/* mov m(%rdi),%r8 */
	    !FIND(c, 64, &sp, 0x48, 0x8b, 0x66, ANY) || /* mov sp(%rsi),%rsp */
	    !FIND(c, 0, &below, 0x48, 0x83, 0xec, ANY, 0x48, 0x83, 0xe4, 0xf0) ||
	    !read_at_sp(c, STORE, RDI, 0, &at_g) ||
	    !FIND(c, 0, &hi, 0x48, 0x8b, 0x7f, ANY) || /* mov hi(%rdi),%rdi */
	    !FIND(c, 0, NULL, 0x48, 0x29, 0xd7) ||     /* sub %rdx,%rdi */
	    !read_at_sp(c, STORE, RDI, 0, &at_depth))
		return false;
	g->capture.m = (uint16_t)m;
	g->capture.sp = (uint16_t)sp;
	g->capture.hi = (uint16_t)hi;
	g->call.below = (uint32_t)below;
	g->call.g = (uint32_t)at_g;
	g->call.depth = (uint32_t)at_depth;
	return m > 0 && sp > 0 && below > 0 && at_g >= 0 && at_depth >= 0 && hi > 0;
}

/* The call, and behind it the way back by what was noted. */
static bool read_call(struct code *c, struct go_program *g)
{
	int32_t at_g = -1, at_depth = -1, hi = -1;

	if (!FIND(c, 16, NULL, 0xff, 0xd0)) /* call *%rax */
		return false;
	g->call.ret = c->address + c->at;
	/* Code that is position independent loads where the goroutine's register is first. */
	return read_at_sp(c, LOAD, RDI, 8, &at_g) && FIND(c, 0, &hi, 0x48, 0x8b, 0x77, ANY) &&
	       read_at_sp(c, SUBTRACT, RSI, 0, &at_depth) &&
	       FIND(c, 24, NULL, 0x48, 0x89, 0xf4) && /* mov %rsi,%rsp */
	       (uint32_t)at_g == g->call.g && (uint32_t)at_depth == g->call.depth &&
	       hi == g->capture.hi;
}

/* Bytes from the stack pointer at a call of @f that returns to @ret, up to the return address. */
static bool frame_at(const struct examined *e, const struct dwunw_pcln_function *f, uint64_t ret,
		     uint32_t *bytes)
{
	int32_t frame;

	if (!dwunw_pclntab_frame(&e->table, f, ret - 1, &frame))
		return false;
	*bytes = (uint32_t)frame;
	return true;
}

/* runtime.asmcgocall: there are two of that name, of which one has the code. */
static bool read_asmcgocall(const struct examined *e, const struct dwunw_pcln_function *f,
			    struct go_program *g)
{
	struct code c;

	if (g->call.ret)
		return true;
	if (open_code(e, f, &c) && read_switch(&c, g) && read_call(&c, g) &&
	    frame_at(e, f, g->call.ret, &g->call.frame)) {
		g->call.ret += e->bias;
		return true;
	}
	memset(&g->call, 0, sizeof(g->call));
	return false;
}

/* runtime.cgocallback: it notes at the other stack's pointer what that was before, and the thread's
 * goroutine is in the structure that it reads. */
static void read_cgocallback(const struct examined *e, const struct dwunw_pcln_function *f,
			     struct go_program *g)
{
	int32_t curg = 0, sp = 0, frame = 0;
	struct code c;

	if (g->callback.ret || !open_code(e, f, &c) ||
	    !FIND(&c, MAX_CODE, &sp, 0x48, 0x89, 0x04, 0x24, 0x48, 0x89, 0x66, ANY) ||
	    !FIND(&c, 0, &curg, 0x48, 0x8b, 0xb3, ANY, ANY, ANY, ANY) || /* mov curg(%rbx),%rsi */
	    !FIND(&c, 128, &frame, 0xff, 0xd0, 0x48, 0x8d, 0x44, 0x24, ANY) || curg <= 0 ||
	    curg > UINT16_MAX)
		return;
	/* Behind the call is the instruction with the size. */
	g->callback.ret = c.address + c.at - 5;
	if (frame_at(e, f, g->callback.ret, &g->callback.frame) &&
	    (int32_t)g->callback.frame + 8 == frame) {
		g->callback.ret += e->bias;
		g->capture.curg = (uint16_t)curg;
	} else {
		g->callback.ret = 0;
	}
	(void)sp;
}

/* runtime.callCgoMmap: the runtime maps memory by a function of C, which is an allocator's own call
 * of mmap.  Only where it goes is known: the first call there is that. */
static void read_map(const struct examined *e, const struct dwunw_pcln_function *f,
		     struct go_program *g)
{
	int32_t distance;
	uint64_t start;
	struct code c;

	if (!open_code(e, f, &c) ||
	    !FIND(&c, 64, &distance, 0x48, 0x8b, 0x05, ANY, ANY, ANY, ANY)) /* mov at(%rip),%rax */
		return;
	start = go_table_word(e->elf, c.address + c.at + (uint64_t)(int64_t)distance);
	if (!start)
		return;
	c = (struct code){.address = start};
	c.bytes = elffile_bytes(e->elf, start, 48, &c.len);
	if (c.bytes && FIND(&c, 48, NULL, 0xe8, ANY, ANY, ANY, ANY))
		g->capture.mapped = start + c.at + e->bias;
}

static void read_function(const struct examined *e, const struct dwunw_pcln_function *f,
			  struct go_program *g)
{
	if (is_named(f, "runtime.asmcgocall")) {
		read_asmcgocall(e, f, g);
	} else if (is_named(f, "runtime.cgocallback")) {
		read_cgocallback(e, f, g);
	} else if (is_named(f, "runtime.callCgoMmap")) {
		if (!g->capture.mapped)
			read_map(e, f, g);
	} else if (is_named(f, "crosscall2")) {
		g->callback.from = f->start + e->bias;
		g->callback.to = f->end + e->bias;
	}
}

bool go_program_read(struct go_program *g, Elf *elf, const struct mlk_mapping *m)
{
	struct examined e = {.elf = elf,
			     .bias = m->start - m->offset - elffile_bias(elf, m->offset)};
	struct go_table t;

	memset(g, 0, sizeof(*g));
	g->start = m->start;
	g->inode = m->inode;
	if (!go_table_find(elf, &t) || !t.text || !dwunw_pclntab_open(&e.table, t.bytes, t.len))
		return false;
	e.table.text = t.text;
	g->has_table = true;
	for (uint32_t i = 0; i < e.table.nr; i++) {
		struct dwunw_pcln_function f;

		if (dwunw_pclntab_function(&e.table, i, &f))
			read_function(&e, &f, g);
	}
	g->is_go = g->call.ret && g->callback.ret;
	g->capture.on = g->is_go;
	return g->is_go;
}

bool go_program_know(struct go_program *g, const struct target *t, const struct mlk_mapping *m)
{
	static bool warned; /* of one */
	int fd;
	Elf *elf;

	if (g->start == m->start && g->inode == m->inode)
		return g->is_go;
	memset(g, 0, sizeof(*g));
	g->start = m->start;
	g->inode = m->inode;
	fd = target_open_mapped(t, m);
	elf = fd < 0 ? NULL : elffile_open(fd);
	if (elf && !go_program_read(g, elf, m) && g->has_table && !warned) {
		warned = true;
		log_warn("process %d runs a Go program whose calls of C are not as they are known: "
			 "its stacks end where Go calls C",
			 (int)t->pid);
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
	return g->is_go;
}
