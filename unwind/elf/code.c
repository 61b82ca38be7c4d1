/* code.c - see code.h */
#include "unwind/elf/code.h"

#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>

#define MAX_CALL 7 /* bytes of an instruction */

/* What of the code of @elf is in its image, before the address @addr of the file: at most @max
 * bytes, which end there.  Returns how many; *code is their end. */
static size_t code_before(Elf *elf, uint64_t addr, size_t max, const uint8_t **code)
{
	size_t len = 0;
	const char *image = elf_rawfile(elf, &len);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while (image && (scn = elf_nextscn(elf, scn))) {
		uint64_t at;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR) || addr <= sh.sh_addr)
			continue;
		at = addr - sh.sh_addr;
		if (at > sh.sh_size || sh.sh_offset > len || at > len - sh.sh_offset)
			continue;
		*code = (const uint8_t *)image + sh.sh_offset + at;
		return at < max ? at : max;
	}
	return 0;
}

/* Do the @len bytes that end at @end end in a call instruction? */
static bool ends_in_call(const uint8_t *end, size_t len)
{
	/* of an indirect call, by the length from its opcode on: it depends on the operand */
	static const uint8_t lengths[] = {2, 3, 4, 6, 7};

	if (len >= 5 && end[-5] == 0xe8)
		return true;
	for (size_t i = 0; i < sizeof(lengths); i++)
		if (len >= lengths[i] && end[-lengths[i]] == 0xff &&
		    (end[1 - lengths[i]] >> 3 & 7) == 2)
			return true;
	return false;
}

int dwunw_code_calls(Elf *elf, uint64_t addr)
{
	const uint8_t *code = NULL;
	size_t len = code_before(elf, addr, MAX_CALL, &code);

	return len ? ends_in_call(code, len) : -1;
}
