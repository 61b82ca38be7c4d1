/* cfi_check.c - see cfi_check.h
 *
 * For each address libdw interprets the instructions of an entry from the first on, and for each
 * DW_CFA_remember_state it copies all rules: what is too long is a weapon.  Which entry it will use
 * is not told, so all are looked at: those that follow each other, those that the table in
 * .eh_frame_hdr leads to, which may be hidden within others, and the CIEs that they refer to.
 */
#include "unwind/cfi_check.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdint.h>
#include <string.h>

#include "unwind/elf_util.h"

/* Bytes of one entry.  The longest one found in some thousand libraries has 60772. */
#define MAX_ENTRY 65536

#define HDR_LEN	  12 /* of .eh_frame_hdr before its table, as linkers write it */
#define HDR_TABLE (DW_EH_PE_datarel | DW_EH_PE_sdata4)

struct check {
	const unsigned char *ident;
	Elf_Data *data;
	bool is_eh;
	uint64_t addr;	     /* of the section */
	Dwarf_Off known_cie; /* one that is known to be good */
	const uint8_t *hdr;  /* .eh_frame_hdr, or NULL */
	size_t hdr_len;
	uint64_t hdr_addr;
};

static bool check_init(struct check *c, Elf *elf, Elf_Data *data, bool is_eh)
{
	*c = (struct check){.data = data, .is_eh = is_eh, .known_cie = UINT64_MAX};
	c->ident = (const unsigned char *)elf_getident(elf, NULL);
	return c->ident && data && data->d_buf;
}

/* Look at the entry at @at; *next is where the one after it is.  Returns 1 good, 0 bad, or -1 what
 * libdw will not use. */
static int check_entry(struct check *c, Dwarf_Off at, Dwarf_Off *next)
{
	Dwarf_CFI_Entry entry, cie;
	Dwarf_Off after_cie = at;
	int unusable;

	*next = at;
	unusable = dwarf_next_cfi(c->ident, c->data, c->is_eh, at, next, &entry);
	if (unusable)
		return -1;
	if (*next - at > MAX_ENTRY)
		return 0;
	if (dwarf_cfi_cie_p(&entry) || entry.CIE_id == c->known_cie)
		return 1;
	c->known_cie = entry.CIE_id;
	if (entry.CIE_id >= c->data->d_size) /* libdw would not notice that of the last numbers */
		return 0;
	unusable = dwarf_next_cfi(c->ident, c->data, c->is_eh, entry.CIE_id, &after_cie, &cie);
	return unusable || after_cie - entry.CIE_id <= MAX_ENTRY;
}

static bool check_all(struct check *c)
{
	Dwarf_Off at = 0, next = 0;
	int good;

	/* libdw goes on after an entry that it cannot use, if it can tell where the next one is. */
	do {
		at = next;
		good = check_entry(c, at, &next);
	} while (good && next != at && next != (Dwarf_Off)-1);
	return good != 0;
}

static int32_t get_sdata4(const uint8_t *bytes)
{
	int32_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

static bool check_table(struct check *c)
{
	const uint8_t *hdr = c->hdr;
	uint32_t nr;

	if (!hdr)
		return true;
	if (c->hdr_len < 4 + sizeof(int32_t))
		return false;
	if (hdr[2] == DW_EH_PE_omit || hdr[3] == DW_EH_PE_omit)
		return true;
	if ((hdr[1] & 0x07) != DW_EH_PE_udata4 || hdr[2] != DW_EH_PE_udata4 ||
	    hdr[3] != HDR_TABLE || c->hdr_len < HDR_LEN)
		return false;
	nr = (uint32_t)get_sdata4(hdr + 8);
	if (nr > (c->hdr_len - HDR_LEN) / 8)
		return false;
	for (uint32_t i = 0; i < nr; i++) {
		uint64_t fde =
			c->hdr_addr + (uint64_t)(int64_t)get_sdata4(hdr + HDR_LEN + 8 * i + 4);
		Dwarf_Off next;

		if (fde - c->addr < c->data->d_size && !check_entry(c, fde - c->addr, &next))
			return false;
	}
	return true;
}

/* Without section headers libdw goes by the segment, and takes .eh_frame to reach to the end of the
 * file. */
static bool find_by_segment(struct check *c, Elf *elf)
{
	GElf_Phdr ph = {0};
	Elf_Data *hdr = NULL, *data;
	size_t nr = 0, len = 0;
	uint64_t at;

	if (elf_getphdrnum(elf, &nr) || !elf_rawfile(elf, &len))
		return false;
	for (size_t i = 0; i < nr && !hdr && gelf_getphdr(elf, (int)i, &ph); i++)
		if (ph.p_type == PT_GNU_EH_FRAME)
			hdr = elf_getdata_rawchunk(elf, (int64_t)ph.p_offset, ph.p_filesz,
						   ELF_T_BYTE);
	if (!hdr || hdr->d_size < HDR_LEN)
		return false;
	c->hdr = hdr->d_buf;
	/* What linkers write, and no other encoding. */
	if (c->hdr[1] != (DW_EH_PE_pcrel | DW_EH_PE_sdata4))
		return false;
	at = ph.p_offset + 4 + (uint64_t)(int64_t)get_sdata4(c->hdr + 4);
	data = at < len ? elf_getdata_rawchunk(elf, (int64_t)at, len - at, ELF_T_BYTE) : NULL;
	if (!check_init(c, elf, data, true))
		return false;
	c->hdr = hdr->d_buf;
	c->hdr_len = hdr->d_size;
	c->hdr_addr = ph.p_vaddr;
	c->addr = ph.p_vaddr + at - ph.p_offset;
	return true;
}

/* The first .eh_frame and the last .eh_frame_hdr before it: these are the ones that libdw takes. */
static bool find_by_section(struct check *c, Elf *elf)
{
	Elf_Scn *scn = NULL;
	Elf_Data *hdr = NULL;
	GElf_Shdr shdr;
	uint64_t hdr_addr = 0;
	const char *name = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return false;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		name = gelf_getshdr(scn, &shdr) ? elf_strptr(elf, names, shdr.sh_name) : NULL;
		if (name && !strcmp(name, ".eh_frame"))
			break;
		if (!name || strcmp(name, ".eh_frame_hdr"))
			continue;
		hdr = elf_rawdata(scn, NULL);
		hdr_addr = shdr.sh_addr;
		if (!hdr || !hdr->d_buf) /* of type NOBITS or empty: libdw would read it */
			return false;
	}
	if (!scn || !check_init(c, elf, elf_rawdata(scn, NULL), true))
		return false;
	c->addr = shdr.sh_addr;
	c->hdr = hdr ? hdr->d_buf : NULL;
	c->hdr_len = hdr ? hdr->d_size : 0;
	c->hdr_addr = hdr_addr;
	return true;
}

bool dwunw_cfi_check_eh(Elf *elf)
{
	struct check c;
	size_t nr = 0;

	if (elf_getshdrnum(elf, &nr))
		return false;
	if (nr ? !find_by_section(&c, elf) : !find_by_segment(&c, elf))
		return false;
	return check_all(&c) && check_table(&c);
}

bool dwunw_cfi_check_debug(Elf *elf)
{
	static const char *const names[] = {".debug_frame", ".zdebug_frame"};

	/* libdw takes whichever comes first. */
	for (size_t i = 0; i < 2; i++) {
		GElf_Shdr shdr;
		Elf_Scn *scn = dwunw_elf_section(elf, names[i], &shdr);
		struct check c;

		if (scn && (!check_init(&c, elf, elf_getdata(scn, NULL), false) || !check_all(&c)))
			return false;
	}
	return true;
}
