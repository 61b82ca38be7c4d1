/* cfi_entry.c - see cfi_entry.h */
#include "unwind/cfi/cfi_entry.h"

#define MAX_LETTERS 32 /* of an augmentation; the longest one known is "zPLRSB" */

/* The beginning of an entry. */
struct head {
	struct dwunw_bytes body; /* what follows the id */
	uint64_t id;		 /* of a CIE, or where an FDE's CIE is in the section */
	uint64_t next;
	bool wide; /* of the 64-bit form */
	enum dwunw_entry_kind kind;
};

/* The id of .eh_frame has 4 bytes in the 64-bit form too (so the LSB, and LLVM); the assemblers
 * that wrote 8 are met halfway in read_cie(). */
static void read_id(struct head *h, const struct dwunw_cfi_section *s)
{
	uint64_t at = (uint64_t)(h->body.at - s->bytes);
	size_t size = h->wide && !s->eh ? 8 : 4;
	bool is_cie;

	h->id = dwunw_bytes_u(&h->body, size);
	is_cie = s->eh ? !h->id : h->id == (h->wide ? UINT64_MAX : UINT32_MAX);
	h->kind = is_cie ? DWUNW_ENTRY_CIE : DWUNW_ENTRY_FDE;
	if (h->kind == DWUNW_ENTRY_FDE && s->eh)
		h->id = at - h->id; /* how far back the CIE is; wraps to what is no place */
	if (h->body.bad || (h->kind == DWUNW_ENTRY_FDE && h->id >= s->len))
		h->kind = DWUNW_ENTRY_OTHER;
}

static void read_head(struct head *h, const struct dwunw_cfi_section *s, uint64_t at)
{
	uint64_t len;

	*h = (struct head){.kind = DWUNW_ENTRY_END, .next = at};
	if (at >= s->len)
		return;
	h->body = (struct dwunw_bytes){s->bytes + at, s->bytes + s->len, false};
	len = dwunw_bytes_u(&h->body, 4);
	h->wide = len == UINT32_MAX;
	if (h->wide)
		len = dwunw_bytes_u(&h->body, 8);
	if (h->body.bad || len > dwunw_bytes_left(&h->body))
		return;
	h->body.end = h->body.at + len;
	h->next = (uint64_t)(h->body.end - s->bytes);
	if (len)
		read_id(h, s);
	else if (!s->open_ended)
		h->kind = DWUNW_ENTRY_TERMINATOR;
}

enum dwunw_entry_kind dwunw_entry_head(const struct dwunw_cfi_section *section, uint64_t at,
				       uint64_t *next)
{
	struct head h;

	read_head(&h, section, at);
	*next = h.next;
	return h.kind;
}

/* Pass over an address in the form @encoding, which may be aligned. */
static void skip_address(struct dwunw_bytes *b, const struct dwunw_cfi_section *s, uint8_t encoding)
{
	if (encoding == DW_EH_PE_aligned)
		dwunw_bytes_take(b, -(s->addr + (uint64_t)(b->at - s->bytes)) & 7);
	dwunw_bytes_encoded(b, encoding == DW_EH_PE_aligned ? DW_EH_PE_absptr : encoding);
}

/* Read what the letters from @letter on mean.  One that is not known ends it: the length of all
 * says where to go on. */
static void read_augmentation(struct dwunw_cie *cie, struct dwunw_bytes *b,
			      const struct dwunw_cfi_section *s, const char *letter)
{
	for (; *letter; letter++) {
		switch (*letter) {
		case 'R':
			cie->encoding = (uint8_t)dwunw_bytes_u(b, 1);
			break;
		case 'P':
			skip_address(b, s, (uint8_t)dwunw_bytes_u(b, 1));
			break;
		case 'L':
			dwunw_bytes_u(b, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* of arm64: pointers are signed with the other key */
			break;
		default:
			return;
		}
	}
}

/* False for an augmentation that says nothing of its length, but has letters. */
static bool read_sized_augmentation(struct dwunw_cie *cie, struct dwunw_bytes *b,
				    const struct dwunw_cfi_section *s, const char *letters)
{
	struct dwunw_bytes inner = {0};

	if (letters[0] != 'z')
		return !letters[0] || !strcmp(letters, "eh");
	cie->sized = true;
	inner.at = dwunw_bytes_take(b, dwunw_bytes_uleb(b));
	inner.end = b->at;
	if (!inner.at)
		return false;
	read_augmentation(cie, &inner, s, letters + 1);
	return !inner.bad;
}

/* Many FDEs may come back to one CIE: its letters must not be a book. */
static size_t room_for_letters(const struct dwunw_bytes *b)
{
	return dwunw_bytes_left(b) < MAX_LETTERS ? dwunw_bytes_left(b) : MAX_LETTERS;
}

static bool read_cie(struct dwunw_cie *cie, const struct dwunw_cfi_section *s, uint64_t at)
{
	const char *letters;
	struct dwunw_bytes *b;
	uint8_t version;
	struct head h;

	read_head(&h, s, at);
	if (h.kind != DWUNW_ENTRY_CIE)
		return false;
	b = &h.body;
	*cie = (struct dwunw_cie){
		.encoding = DW_EH_PE_absptr, .addr_size = 8, .wide_id = h.wide && !s->eh};
	version = (uint8_t)dwunw_bytes_u(b, 1);
	if (!version && h.wide && s->eh) { /* there is none of 0: this is the id's second half */
		cie->wide_id = true;
		dwunw_bytes_take(b, 3);
		version = (uint8_t)dwunw_bytes_u(b, 1);
	}
	if (version != 1 && version != 3 && version != 4)
		return false;
	letters = (const char *)b->at;
	if (strnlen(letters, room_for_letters(b)) == room_for_letters(b))
		return false;
	dwunw_bytes_take(b, strlen(letters) + 1);
	if (version == 4) {
		cie->addr_size = (uint8_t)dwunw_bytes_u(b, 1);
		if (dwunw_bytes_u(b, 1)) /* segments */
			return false;
	}
	if (!strcmp(letters, "eh")) /* of gcc 2: a pointer that no one needs */
		dwunw_bytes_take(b, 8);
	cie->code_align = dwunw_bytes_uleb(b);
	cie->data_align = dwunw_bytes_sleb(b);
	cie->ra = version == 1 ? dwunw_bytes_u(b, 1) : dwunw_bytes_uleb(b);
	if (!read_sized_augmentation(cie, b, s, letters))
		return false;
	cie->insns = b->at;
	cie->insns_end = b->end;
	return !b->bad && (cie->addr_size == 8 || cie->addr_size == 4);
}

uint64_t dwunw_fde_address(const struct dwunw_fde *fde, struct dwunw_bytes *b)
{
	const struct dwunw_cfi_section *s = fde->section;
	uint8_t encoding = fde->cie.encoding;
	uint64_t here = s->addr + (uint64_t)(b->at - s->bytes);

	if (!s->eh)
		return dwunw_bytes_u(b, fde->cie.addr_size);
	switch (encoding & ~0x0f) {
	case 0:
		return dwunw_bytes_encoded(b, encoding);
	case DW_EH_PE_pcrel:
		return here + dwunw_bytes_encoded(b, encoding);
	case DW_EH_PE_aligned:
		dwunw_bytes_take(b, -here & 7);
		return dwunw_bytes_u(b, 8);
	}
	b->bad = true; /* through memory, or from where only a running program knows */
	return 0;
}

/* Read the address that @fde begins at, and, into fde->end, the number of bytes it covers. */
static void read_addresses(struct dwunw_fde *fde, struct dwunw_bytes *b)
{
	const struct dwunw_cfi_section *s = fde->section;

	if (s->eh && fde->cie.encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4)) { /* the usual */
		fde->start = s->addr + (uint64_t)(b->at - s->bytes);
		fde->start += dwunw_bytes_s(b, 4);
		fde->end = dwunw_bytes_s(b, 4);
		return;
	}
	fde->start = dwunw_fde_address(fde, b);
	fde->end = s->eh ? dwunw_bytes_encoded(b, fde->cie.encoding & 0x0f)
			 : dwunw_bytes_u(b, fde->cie.addr_size);
}

bool dwunw_fde_read(struct dwunw_fde *fde, const struct dwunw_cfi_section *section, uint64_t at)
{
	struct head h;

	read_head(&h, section, at);
	if (h.kind != DWUNW_ENTRY_FDE)
		return false;
	if (fde->section != section || fde->cie_at != h.id) {
		fde->section = NULL;
		if (!read_cie(&fde->cie, section, h.id))
			return false;
		fde->section = section;
		fde->cie_at = h.id;
	}
	if (h.wide && section->eh && fde->cie.wide_id)
		dwunw_bytes_take(&h.body, 4);
	fde->entry = section->bytes + at;
	read_addresses(fde, &h.body);
	if (fde->cie.sized)
		dwunw_bytes_take(&h.body, dwunw_bytes_uleb(&h.body));
	fde->insns = h.body.at;
	fde->insns_end = h.body.end;
	return !h.body.bad && !__builtin_add_overflow(fde->start, fde->end, &fde->end);
}
