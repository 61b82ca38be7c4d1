/* heap_scrub.h - leave no words of before on the stack and in registers */
#ifndef HEAP_SCRUB_H
#define HEAP_SCRUB_H

#include <string.h>

#include "../../samples/sample.h"

static FRAME void scrub(void)
{
	volatile char room[48 << 10];

	memset((char *)room, 0, sizeof(room));
	__asm__ volatile("xor %%ecx, %%ecx; xor %%edx, %%edx; xor %%esi, %%esi; xor %%edi, %%edi;"
			 "xor %%r8d, %%r8d; xor %%r9d, %%r9d; xor %%r10d, %%r10d; xor %%r11d, %%r11d"
			 : : : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

#endif
