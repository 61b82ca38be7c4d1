/* fake_python314.c - has frames as CPython 3.14, and says where, as that does
 *
 * usage: python-fake
 *
 * It allocates 100 blocks of 47 bytes, in the frames of inner, called by outer.  Built with
 * FREE_THREADED it says that it is built without the GIL.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN __attribute__((visibility("default")))
#ifndef FREE_THREADED
#define FREE_THREADED 0
#endif

enum { VERSION = 0x030e00f0, FRAME = 72, THREAD = 152 };

SHOWN uint64_t PyCode_Type[64];
SHOWN const unsigned long Py_Version = VERSION;
SHOWN uint64_t _PyRuntime[1024] = {
	0x7970677562656478, /* "xdebugpy" */
	VERSION,
	FREE_THREADED,
	1, 1, 1,					 /* the runtime */
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,	 /* an interpreter */
	300, 1, 1, 1, FRAME, THREAD, 1, 1, 1,		 /* a thread */
	88, 8, 0, 56, 80, 74, 64, 0,			 /* a frame */
	300, 112, 120, 128, 136, 68, 1, 1, 1, 200, 0,	 /* a code object */
};

struct text {
	uint64_t head[2], length, hash, state;
	char characters[24];
};

struct frame {
	uint64_t code;
	struct frame *previous;
	uint64_t unused[5], instr, stack;
	uint16_t return_offset;
	uint8_t owner, visited;
};

struct code {
	uint64_t words[40];
};

static struct text inner = {.state = 3 | 1 << 16 | 1 << 19 | 1 << 20},
		   outer = {.state = 3 | 1 << 16 | 1 << 19 | 1 << 20},
		   file = {.state = 3 | 1 << 16 | 1 << 19 | 1 << 20};
static uint64_t lines[5] = {0, 0, 2, 0, 0x02d8}; /* of 2 bytes: 1 line more; columns */
static struct code codes[2];
static struct frame frames[3];
static uint64_t thread[64];
static __thread void *state;

SHOWN __attribute__((noinline)) void *_PyThreadState_GetCurrent(void)
{
	return state;
}

static void make_code(struct code *code, struct text *name, const char *text)
{
	name->length = strlen(text);
	strcpy(name->characters, text);
	code->words[1] = (uint64_t)PyCode_Type;
	code->words[8] = 7ull << 32; /* the first line */
	code->words[14] = (uint64_t)&file;
	code->words[15] = (uint64_t)name;
	code->words[17] = (uint64_t)lines;
}

static void make(void)
{
	file.length = 6;
	strcpy(file.characters, "new.py");
	make_code(&codes[0], &inner, "inner");
	make_code(&codes[1], &outer, "outer");
	for (int i = 0; i < 2; i++) {
		frames[i].code = (uint64_t)&codes[i] | 1; /* as a reference that is not counted */
		frames[i].previous = &frames[i + 1];
		frames[i].instr = (uint64_t)&codes[i] + 200;
	}
	frames[2].owner = 3;
	thread[FRAME / 8] = (uint64_t)&frames[0];
	thread[THREAD / 8] = (uint64_t)__builtin_thread_pointer();
	state = thread;
}

SHOWN __attribute__((noinline)) void *_PyEval_EvalFrameDefault(void)
{
	void *block = malloc(47);

	__asm__ volatile("" : "+r"(block)); /* no tail call */
	return block;
}

int main(void)
{
	make();
	for (int i = 0; i < 100; i++)
		if (!_PyThreadState_GetCurrent() || !_PyEval_EvalFrameDefault())
			return 1;
	return 0;
}
