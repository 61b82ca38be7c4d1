/* slices.c - what zstd-1 makes of the raw first 128 bytes of each stack alone, in chunks of 1 MiB
 *
 * usage: slices TRACE, recorded with --raw-stack.  Prints the number of allocations, the bytes, and
 * how many there were of all stacks and registers before anything was made of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zstd.h>

#include "format/reader.h"

#define SLICE 128
#define CHUNK (1u << 20)

int main(int argc, char **argv)
{
	static uint8_t chunk[CHUNK], out[2 * CHUNK];
	uint64_t nr = 0, bytes = 0, all = 0;
	struct mlk_reader *r;
	struct mlk_record rec;
	size_t used = 0;

	if (argc != 2 || mlk_reader_open_file(&r, argv[1])) {
		fprintf(stderr, "usage: slices TRACE\n");
		return 2;
	}
	mlk_reader_rewind(r, MLK_RECORD_EVENT);
	while (mlk_reader_next(r, &rec) == 1) {
		size_t len = rec.event.stack_len < SLICE ? rec.event.stack_len : SLICE;

		if (rec.event.kind != MLK_ALLOC)
			continue;
		if (used + SLICE > CHUNK) {
			bytes += ZSTD_compress(out, sizeof(out), chunk, used, 1);
			used = 0;
		}
		memcpy(chunk + used, rec.event.stack, len);
		used += len;
		all += rec.event.stack_len + rec.event.nr_regs * 8u;
		nr++;
	}
	bytes += ZSTD_compress(out, sizeof(out), chunk, used, 1);
	mlk_reader_free(r);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", nr, bytes, all);
	return 0;
}
