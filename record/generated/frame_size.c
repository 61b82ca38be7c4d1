/* frame_size.c - see frame_size.h */
#include "record/generated/frame_size.h"

#include <stdbool.h>
#include <string.h>

/* A write to the stack far below rsp, which HotSpot makes first: mov %eax,-0xN(%rsp) */
static const uint8_t probe[] = {0x89, 0x84, 0x24};
#define PROBE_LEN 7

/* push %rbp */
#define PUSH_RBP 0x55

/* The N of sub $N,%rsp at @code, which has 8 bytes or more; its length goes to *@len.  0: it is
 * another instruction. */
static uint32_t subtracted(const uint8_t *code, size_t *len)
{
	uint32_t size = 0;

	if (code[0] != 0x48 || code[2] != 0xec)
		return 0;
	if (code[1] == 0x83 && code[3] < 0x80) {
		*len = 4;
		return code[3];
	}
	if (code[1] == 0x81) {
		*len = 7;
		memcpy(&size, code + 3, sizeof(size));
	}
	return size < 1u << 20 ? size : 0;
}

/* mov %rbp,N(%rsp) at @code? */
static bool saves_rbp(const uint8_t *code, uint32_t to)
{
	uint32_t at;

	if (code[0] != 0x48 || code[1] != 0x89)
		return false;
	memcpy(&at, code + 4, sizeof(at));
	return (code[2] == 0x6c && code[3] == 0x24 && code[4] == to) ||
	       (code[2] == 0xac && code[3] == 0x24 && at == to);
}

uint32_t frame_size(const uint8_t *code, size_t len)
{
	const size_t most = PROBE_LEN + 16;
	size_t insn = 0;
	uint32_t size;

	for (size_t at = 0; at + most <= len; at++) {
		const uint8_t *behind = code + at + PROBE_LEN;

		if (!memcmp(code + at, probe, sizeof(probe)) && behind[0] == PUSH_RBP) {
			size = subtracted(behind + 1, &insn);
			return size ? size + 8 : 0;
		}
		size = subtracted(code + at, &insn);
		if (size > 8 && saves_rbp(code + at + insn, size - 8))
			return size;
	}
	return 0;
}
