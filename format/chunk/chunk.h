/* chunk.h - the file header and the chunk header, doc/trace-format.md sections 2 and 3 */
#ifndef MLK_CHUNK_H
#define MLK_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

#include "format/reader.h"

#define MLK_MAJOR	 1
#define MLK_MINOR	 19
#define MLK_FILE_HEADER	 64
#define MLK_CHUNK_HEADER 96
#define MLK_RAW_TARGET	 (1u << 20)
#define MLK_RAW_MAX	 (4u << 20)
#define MLK_STORED_MAX	 4210688u /* ZSTD_compressBound(MLK_RAW_MAX), a constant of the format */
#define MLK_MAGIC_LEN	 8
/* Bits of the file header's required features: the second coding of EVENTS; its third; records of
 * MLK_PAGES; its fourth; those of all that a recorder writes; and all that are known. */
#define MLK_REQUIRED_GUESSES   1u
#define MLK_REQUIRED_SUMMARIES 2u
#define MLK_REQUIRED_PAGES     4u
#define MLK_REQUIRED_RECENT    8u
#define MLK_REQUIRED_DISTANCES 16u
#define MLK_REQUIRED	       (MLK_REQUIRED_GUESSES | MLK_REQUIRED_RECENT | MLK_REQUIRED_DISTANCES)
#define MLK_REQUIRED_KNOWN     31u

/* What a chunk holds, by its number in the file. */
enum mlk_chunk_type {
	MLK_CHUNK_META = 1,
	MLK_CHUNK_MAPS = 2,
	MLK_CHUNK_MODULE = 3,
	MLK_CHUNK_EVENTS = 4,
	MLK_CHUNK_THREADS = 5,
	MLK_CHUNK_LOSSES = 6,
	MLK_CHUNK_END = 7,
	MLK_CHUNK_INDEX = 8,
	MLK_CHUNK_STACKS = 9,
	MLK_CHUNK_OVERRUNS = 10,
	MLK_CHUNK_UNWOUND = 11,
	MLK_CHUNK_ORIGINS = 12,
	MLK_CHUNK_MEMORY = 13,
	MLK_CHUNK_ACCOUNTS = 14,
	MLK_CHUNK_REGIONS = 15,
	MLK_CHUNK_MARKS = 16,
	MLK_CHUNK_POINTERS = 17,
	MLK_CHUNK_PASS = 18,
	MLK_CHUNK_HEAP = 20,
	MLK_CHUNK_SMAPS = 22,
	MLK_CHUNK_CODE_NAMES = 23,
	MLK_CHUNK_CODE = 24,
	MLK_CHUNK_INTERPRETERS = 25,
};

/* Of a chunk: how its payload is stored. */
enum mlk_chunk_flag { MLK_CHUNK_ZSTD = 1 << 0 };

/* What a chunk begins with. */
extern const uint8_t mlk_chunk_magic[MLK_MAGIC_LEN];

/* The checksum of the format: CRC-32, as zlib has it. */
uint32_t mlk_crc32(const void *bytes, size_t len);

/* Write @h into the MLK_FILE_HEADER bytes at @to, with its checksum. */
void mlk_file_header_pack(uint8_t *to, const struct mlk_header *h);
/* Read the MLK_FILE_HEADER bytes at @from.  Returns 0, MLK_E_MAGIC, MLK_E_VERSION or MLK_E_HEADER.
 */
int mlk_file_header_unpack(struct mlk_header *h, const uint8_t *from);

/* Write @h into the MLK_CHUNK_HEADER bytes at @to, with its checksum. */
void mlk_chunk_header_pack(uint8_t *to, const struct mlk_chunk *h);
/* Read the MLK_CHUNK_HEADER bytes at @from.  False: not a chunk of the file with @salt, or lengths
 * beyond the limits. */
bool mlk_chunk_header_unpack(struct mlk_chunk *h, const uint8_t *from, uint32_t salt);

#endif
