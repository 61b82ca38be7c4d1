/* fake_python.c - what looks like CPython 3.11 to a recorder, and lies
 *
 * usage: python-fake circle|type|none
 *
 * circle: the frame chain has no end.  type: its code object is none.  none: no thread interprets.
 * It allocates 100 blocks of 47 bytes.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef VERSION
#define VERSION 0x030b02f0
#endif
#define WORDS(n) __attribute__((visibility("default"))) uint64_t

WORDS(64) PyCode_Type[64];
WORDS(1024) _PyRuntime[1024];
__attribute__((visibility("default"))) const unsigned long Py_Version = VERSION;

static uint64_t thread[64], cframe[2], frame[16], code[32], name[16], file[16], lines[8];

static void make_text(uint64_t *text, const char *characters)
{
	text[2] = strlen(characters);
	text[4] = 1 << 2 | 1 << 5 | 1 << 6; /* one byte each, compact, ASCII */
	strcpy((char *)&text[6], characters);
}

static void make(const char *kind)
{
	make_text(name, "circle");
	make_text(file, "nowhere.py");
	lines[2] = 1;
	lines[4] = 0x80;
	code[1] = strcmp(kind, "type") ? (uint64_t)PyCode_Type : 1;
	code[9] = 7; /* the first line */
	code[14] = (uint64_t)file;
	code[15] = (uint64_t)name;
	code[17] = (uint64_t)lines;
	frame[4] = (uint64_t)code;
	frame[6] = (uint64_t)frame;	  /* it is its own caller */
	frame[7] = (uint64_t)code + 184; /* the first instruction */
	frame[8] = 1ull << 32;
	cframe[1] = (uint64_t)frame;
	thread[7] = (uint64_t)cframe;
	thread[19] = (uint64_t)__builtin_thread_pointer();
	if (strcmp(kind, "none"))
		_PyRuntime[576 / 8] = (uint64_t)thread;
}

__attribute__((noinline, visibility("default"))) void *_PyEval_EvalFrameDefault(void)
{
	void *block = malloc(47);

	__asm__ volatile("" : "+r"(block)); /* no tail call */
	return block;
}

int main(int argc, char **argv)
{
	make(argc > 1 ? argv[1] : "circle");
	for (int i = 0; i < 100; i++)
		if (!_PyEval_EvalFrameDefault())
			return 1;
	return 0;
}
