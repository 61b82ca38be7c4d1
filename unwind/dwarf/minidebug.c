/* minidebug.c - see minidebug.h */
#include "unwind/dwarf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>

#include "unwind/elf/elf_util.h"

/* Real ones are 5 to 10 times as long as their xz; a bomb is thousands of times as long. */
#define MAX_RATIO  64u
#define MIN_BYTES  ((size_t)1 << 20)
#define MAX_BYTES  ((size_t)1 << 28)
#define MAX_MEMORY ((uint64_t)80 << 20) /* of the decoder; xz -9 takes 65 MiB */

static size_t limit_for(size_t packed)
{
	return packed > (MAX_BYTES - MIN_BYTES) / MAX_RATIO ? MAX_BYTES
							    : MIN_BYTES + MAX_RATIO * packed;
}

/* Unpack @packed to *bytes, which the caller frees.  Returns 0, -ENOMEM or -EINVAL. */
static int unpack(const Elf_Data *packed, void **bytes, size_t *len)
{
	size_t room = limit_for(packed->d_size), from = 0;
	uint64_t memory = MAX_MEMORY;
	uint8_t *out = malloc(room), *fitting;
	lzma_ret ret;

	*len = 0;
	if (!out)
		return -ENOMEM;
	ret = lzma_stream_buffer_decode(&memory, 0, NULL, packed->d_buf, &from, packed->d_size, out,
					len, room);
	if (ret != LZMA_OK || !*len) {
		free(out);
		return ret == LZMA_MEM_ERROR ? -ENOMEM : -EINVAL;
	}
	fitting = realloc(out, *len);
	*bytes = fitting ? fitting : out;
	return 0;
}

int dwunw_minidebug_open(struct dwunw_minidebug *out, Elf *elf)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = dwunw_elf_section(elf, ".gnu_debugdata", &shdr);
	Elf_Data *packed = scn ? elf_rawdata(scn, NULL) : NULL;
	size_t len;
	int err;

	*out = (struct dwunw_minidebug){0};
	if (!packed || !packed->d_buf || !packed->d_size)
		return 0;
	err = unpack(packed, &out->bytes, &len);
	if (err)
		return err;
	out->elf = elf_memory(out->bytes, len);
	if (out->elf && elf_kind(out->elf) == ELF_K_ELF)
		return 0;
	dwunw_minidebug_close(out);
	return -EINVAL;
}

void dwunw_minidebug_close(struct dwunw_minidebug *mini)
{
	elf_end(mini->elf);
	free(mini->bytes);
	*mini = (struct dwunw_minidebug){0};
}
