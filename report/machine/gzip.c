/* gzip.c - see gzip.h */
#include "report/machine/gzip.h"

#include <errno.h>
#include <string.h>

#include <zlib.h>

#define PIECE ((size_t)1 << 20) /* bytes given to zlib at once: it counts in 32 bits */

/* Compress what @z has as input, to its end if @flush says so. */
static void push(z_stream *z, FILE *out, int flush)
{
	unsigned char buf[16384];

	do {
		z->next_out = buf;
		z->avail_out = sizeof(buf);
		deflate(z, flush);
		fwrite(buf, 1, sizeof(buf) - z->avail_out, out);
	} while (!z->avail_out);
}

int gzip_write(FILE *out, const void *bytes, size_t len)
{
	z_stream z;

	memset(&z, 0, sizeof(z));
	/* 16 more than the window's bits: a gzip header, without name and time */
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	for (size_t at = 0; at < len; at += PIECE) {
		size_t left = len - at;

		z.next_in = (unsigned char *)bytes + at;
		z.avail_in = (uInt)(left < PIECE ? left : PIECE);
		push(&z, out, Z_NO_FLUSH);
	}
	push(&z, out, Z_FINISH);
	deflateEnd(&z);
	return 0;
}
