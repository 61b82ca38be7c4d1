/* meta.c - what a trace says of its recording: the file's header and the META chunk */
#include "format/record/meta.h"

#include <string.h>

#include "format/chunk/chunk.h"
#include "format/chunk/chunk_out.h"

static void meta_str(struct mlk_enc *e, unsigned int tag, const char *s)
{
	if (!s || !*s)
		return;
	mlk_enc_uvar(e, tag);
	mlk_enc_str(e, s);
}

static void meta_num(struct mlk_enc *e, unsigned int tag, uint64_t value)
{
	struct mlk_enc field = {0};

	mlk_enc_uvar(&field, value);
	mlk_enc_uvar(e, tag);
	mlk_enc_uvar(e, field.len);
	mlk_enc_bytes(e, field.buf, field.len);
	e->failed |= field.failed;
	mlk_enc_release(&field);
}

void mlk_meta_encode(struct mlk_enc *e, const struct mlk_meta *m)
{
	const uint64_t limits[] = {m->sample_every,  m->sample_bytes, m->min_size, m->max_size,
				   m->trigger_bytes, m->ring_size,    m->guarded};

	meta_str(e, 1, m->command);
	meta_str(e, 2, m->exe);
	meta_str(e, 3, m->comm);
	meta_str(e, 4, m->hostname);
	meta_str(e, 5, m->kernel);
	meta_str(e, 6, m->machine);
	meta_str(e, 7, m->recorder);
	meta_str(e, 8, m->backend);
	meta_num(e, 9, m->tgid);
	meta_num(e, 10, m->stack_limit);
	meta_num(e, 11, m->whole_life);
	for (unsigned int i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i])
			meta_num(e, 12 + i, limits[i]);
}

int mlk_meta_write_header(int fd, uint32_t salt, const struct mlk_meta *m)
{
	uint8_t bytes[MLK_FILE_HEADER];
	struct mlk_file_header h = {
		.major = MLK_MAJOR,
		.minor = MLK_MINOR,
		.header_len = MLK_FILE_HEADER,
		.salt = salt,
		.required = MLK_REQUIRED,
		.stack_mode = (uint32_t)m->stack_mode,
		.realtime_ns = m->realtime_ns,
		.start_ns = m->start_ns,
	};

	mlk_file_header_pack(bytes, &h);
	return mlk_write_whole(fd, 0, bytes, sizeof(bytes));
}

bool mlk_meta_is_valid(const struct mlk_meta *m)
{
	return !mlk_str_too_long(m->command) && !mlk_str_too_long(m->exe) &&
	       !mlk_str_too_long(m->comm) && !mlk_str_too_long(m->hostname) &&
	       !mlk_str_too_long(m->kernel) && !mlk_str_too_long(m->machine) &&
	       !mlk_str_too_long(m->recorder) && !mlk_str_too_long(m->backend) &&
	       m->stack_mode <= MLK_STACK_REDACTED;
}
