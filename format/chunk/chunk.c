/* chunk.c - file header and chunk header to bytes and back */
#include "format/chunk/chunk.h"

#include <string.h>
#include <zlib.h>

#include "format/chunk/codec.h"

static const uint8_t file_magic[MLK_MAGIC_LEN] = {0xf5, 'M', 'L', 'K', 0x0d, 0x0a, 0x1a, 0x0a};
const uint8_t mlk_chunk_magic[MLK_MAGIC_LEN] = {0xf5, 'C', 'H', 'K', 0x0d, 0x0a, 0x1a, 0x0a};

uint32_t mlk_crc32(const void *bytes, size_t len)
{
	return (uint32_t)crc32_z(0, bytes, len);
}

void mlk_file_header_pack(uint8_t *to, const struct mlk_header *h)
{
	memset(to, 0, MLK_FILE_HEADER);
	memcpy(to, file_magic, MLK_MAGIC_LEN);
	mlk_put_u16(to + 8, h->major);
	mlk_put_u16(to + 10, h->minor);
	mlk_put_u32(to + 12, h->len);
	mlk_put_u64(to + 16, h->required);
	mlk_put_u64(to + 24, h->optional);
	mlk_put_u32(to + 32, h->salt);
	mlk_put_u32(to + 36, h->stack_mode);
	mlk_put_u64(to + 40, h->realtime_ns);
	mlk_put_u64(to + 48, h->start_ns);
	mlk_put_u32(to + 60, mlk_crc32(to, 60));
}

int mlk_file_header_unpack(struct mlk_header *h, const uint8_t *from)
{
	if (memcmp(from, file_magic, MLK_MAGIC_LEN))
		return MLK_E_MAGIC;
	if (mlk_get_u32(from + 60) != mlk_crc32(from, 60))
		return MLK_E_HEADER;
	h->major = mlk_get_u16(from + 8);
	h->minor = mlk_get_u16(from + 10);
	h->len = mlk_get_u32(from + 12);
	h->required = mlk_get_u64(from + 16);
	h->optional = mlk_get_u64(from + 24);
	h->salt = mlk_get_u32(from + 32);
	h->stack_mode = mlk_get_u32(from + 36);
	h->realtime_ns = mlk_get_u64(from + 40);
	h->start_ns = mlk_get_u64(from + 48);
	if (h->major != MLK_MAJOR || h->required & ~(uint64_t)MLK_REQUIRED_KNOWN)
		return MLK_E_VERSION;
	return h->len < MLK_FILE_HEADER ? MLK_E_HEADER : 0;
}

void mlk_chunk_header_pack(uint8_t *to, const struct mlk_chunk *h)
{
	memset(to, 0, MLK_CHUNK_HEADER);
	memcpy(to, mlk_chunk_magic, MLK_MAGIC_LEN);
	mlk_put_u32(to + 8, h->salt);
	mlk_put_u16(to + 12, h->type);
	mlk_put_u16(to + 14, h->flags);
	mlk_put_u64(to + 16, h->seq);
	mlk_put_u32(to + 24, h->stored_len);
	mlk_put_u32(to + 28, h->raw_len);
	mlk_put_u64(to + 32, h->first_ns);
	mlk_put_u64(to + 40, h->last_ns);
	mlk_put_u64(to + 48, h->lost_allocs);
	mlk_put_u64(to + 56, h->lost_frees);
	mlk_put_u64(to + 64, h->lost_others);
	mlk_put_u32(to + 72, h->nr_records);
	mlk_put_u32(to + 76, h->payload_crc);
	mlk_put_u32(to + 92, mlk_crc32(to, 92));
}

bool mlk_chunk_header_unpack(struct mlk_chunk *h, const uint8_t *from, uint32_t salt)
{
	if (memcmp(from, mlk_chunk_magic, MLK_MAGIC_LEN) || mlk_get_u32(from + 8) != salt ||
	    mlk_get_u32(from + 92) != mlk_crc32(from, 92))
		return false;
	h->salt = salt;
	h->type = mlk_get_u16(from + 12);
	h->flags = mlk_get_u16(from + 14);
	h->seq = mlk_get_u64(from + 16);
	h->stored_len = mlk_get_u32(from + 24);
	h->raw_len = mlk_get_u32(from + 28);
	h->first_ns = mlk_get_u64(from + 32);
	h->last_ns = mlk_get_u64(from + 40);
	h->lost_allocs = mlk_get_u64(from + 48);
	h->lost_frees = mlk_get_u64(from + 56);
	h->lost_others = mlk_get_u64(from + 64);
	h->nr_records = mlk_get_u32(from + 72);
	h->payload_crc = mlk_get_u32(from + 76);
	return h->stored_len <= MLK_STORED_MAX && h->raw_len <= MLK_RAW_MAX;
}
