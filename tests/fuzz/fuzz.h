/* fuzz.h - what the fuzz targets share: checks, a limit on memory, and traces with right checksums
 *
 * A target is one file with LLVMFuzzerTestOneInput(), linked with libFuzzer or with replay.c.
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/chunk/chunk.h"
#include "format/chunk/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* No input may make this false. */
#define FUZZ_CHECK(claim)                                                                     \
	do {                                                                                  \
		if (!(claim)) {                                                               \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #claim); \
			abort();                                                              \
		}                                                                             \
	} while (0)

/* From here on no more than @most bytes may be allocated at once, or the target ends here.  Only
 * with ASan; without it nothing is counted. */
void fuzz_memory_limit(size_t most);

/* Bytes taken from the front of an input; what is beyond its end is zero. */
struct fuzz_in {
	const uint8_t *at, *end;
};

static inline size_t fuzz_left(const struct fuzz_in *in)
{
	return (size_t)(in->end - in->at);
}

static inline uint64_t fuzz_take(struct fuzz_in *in, unsigned int bytes)
{
	uint64_t value = 0;

	for (unsigned int i = 0; i < bytes && in->at < in->end; i++)
		value |= (uint64_t)*in->at++ << 8 * i;
	return value;
}

#define FUZZ_SALT 0x11223344u

/* The header of a trace. */
static inline void fuzz_file_header(struct mlk_enc *out, uint32_t stack_mode)
{
	const struct mlk_header h = {.major = MLK_MAJOR,
				     .len = MLK_FILE_HEADER,
				     .salt = FUZZ_SALT,
				     .stack_mode = stack_mode};
	uint8_t bytes[MLK_FILE_HEADER];

	mlk_file_header_pack(bytes, &h);
	mlk_enc_bytes(out, bytes, sizeof(bytes));
}

/* A chunk whose header says @h, but for salt, stored length and checksums, which are made right. */
static inline void fuzz_chunk(struct mlk_enc *out, struct mlk_chunk h, const void *stored,
			      size_t stored_len)
{
	uint8_t bytes[MLK_CHUNK_HEADER];

	h.salt = FUZZ_SALT;
	h.stored_len = (uint32_t)stored_len;
	h.payload_crc = mlk_crc32(stored, stored_len);
	mlk_chunk_header_pack(bytes, &h);
	mlk_enc_bytes(out, bytes, sizeof(bytes));
	mlk_enc_bytes(out, stored, stored_len);
}

#endif
