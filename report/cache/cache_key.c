/* cache_key.c - see cache_key.h */
#include "report/cache/cache_key.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "mleak.h"

#define FIRST_DIGEST 0xcbf29ce484222325u /* any that is not 0 */

/* The numbers are in files, so unlike those of hash_index.h they are the same in each run. */

static uint64_t mix_word(uint64_t digest, uint64_t word)
{
	digest = (digest ^ word) * 0x9e3779b97f4a7c15u;
	return digest ^ digest >> 29;
}

static uint64_t mix_bytes(uint64_t digest, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;
	uint64_t word;

	digest = mix_word(digest, len);
	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		digest = mix_word(digest, word);
	}
	word = 0;
	if (len)
		memcpy(&word, at, len);
	return mix_word(digest, word);
}

void cache_trace_note(struct cache_trace *of, const struct mlk_chunk *chunk)
{
	const uint64_t words[] = {
		chunk->offset,	    (uint64_t)chunk->type << 16 | chunk->flags,
		chunk->seq,	    (uint64_t)chunk->stored_len << 32 | chunk->raw_len,
		chunk->payload_crc, chunk->first_ns,
		chunk->last_ns,	    chunk->nr_records,
	};

	of->digest = mix_bytes(of->digest, words, sizeof(words));
	of->unwound |= (chunk->records & MLK_RECORD_UNWOUND) != 0;
	if (!(chunk->records & MLK_RECORD_EVENT))
		return;
	of->nr_chunks++;
	of->events += chunk->nr_records;
}

/* Find the build-id in the notes of @size bytes at @notes, and mix it into *@digest. */
static bool mix_build_id(uint64_t *digest, const uint8_t *notes, size_t size)
{
	while (size >= sizeof(ElfW(Nhdr))) {
		ElfW(Nhdr) note;
		size_t name, len;

		memcpy(&note, notes, sizeof(note));
		name = (note.n_namesz + 3u) & ~(size_t)3;
		len = sizeof(note) + name + ((note.n_descsz + 3u) & ~(size_t)3);
		if (len > size)
			break;
		if (note.n_type == NT_GNU_BUILD_ID) {
			*digest = mix_bytes(*digest, notes + sizeof(note) + name, note.n_descsz);
			return true;
		}
		notes += len;
		size -= len;
	}
	return false;
}

/* For dl_iterate_phdr(3), which calls it first for this program. */
static int mix_program(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *digest = arg;
	bool found = false;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !found; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_NOTE)
			found = mix_build_id(digest,
					     (const uint8_t *)info->dlpi_addr + segment->p_vaddr,
					     segment->p_memsz);
	}
	return 1;
}

/* By what a module is unwound, wherever its image was found.  Symbols tell where V8's builtins are,
 * and a stripped file has the build-id of the one that has them. */
static uint64_t mix_sections(uint64_t digest, const struct dwunw *dw, uint32_t module)
{
	static const char *const names[] = {
		".eh_frame_hdr", ".eh_frame", ".debug_frame", ".zdebug_frame", ".gopclntab",
		".text",	 ".init",     ".fini",	      ".plt",	       ".plt.sec",
		".plt.got",	 ".symtab",   ".dynsym"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t len;
		const void *bytes = dwunw_module_section(dw, module, names[i], &len);

		digest = mix_bytes(digest, bytes ? bytes : "", bytes ? len : 0);
	}
	return digest;
}

static bool is_in_trace(const struct trace_module *image)
{
	return image->whole && !image->broken && image->len == image->whole;
}

static uint64_t mix_module(uint64_t digest, const struct trace_module *image,
			   const struct dwunw *dw)
{
	const bool loaded = image->module != DWUNW_NO_MODULE;

	digest = mix_word(digest, (uint64_t)loaded << 1 | is_in_trace(image));
	return loaded ? mix_sections(digest, dw, image->module) : digest;
}

struct mlk_cache_key cache_key_of(const struct mlk_header *header, const struct cache_trace *of,
				  const struct trace_modules *images, const struct dwunw *dw)
{
	struct mlk_cache_key key = {
		.trace = mix_word(mix_word(of->digest, header->salt), header->start_ns),
		.unwinder = mix_bytes(FIRST_DIGEST, MLEAK_VERSION, sizeof(MLEAK_VERSION)),
	};

	key.trace = mix_word(key.trace, header->realtime_ns ^ header->stack_mode);
	dl_iterate_phdr(mix_program, &key.unwinder);
	for (size_t i = 0; i < images->nr; i++)
		key.unwinder = mix_module(key.unwinder, &images->all[i], dw);
	return key;
}
