/* code.c - see code.h */
#include "format/record/code.h"

#include <errno.h>

#include "format/record/records.h"

#define MAX_RANGES (sizeof(((struct mlk_interpreter *)0)->ranges) / sizeof(struct mlk_code_range))

int mlk_code_encode(struct mlk_enc *e, const struct mlk_code *code)
{
	if (mlk_str_too_long(code->name) || mlk_str_too_long(code->file) ||
	    code->lines_len > MLK_MAX_LINES || !code->number)
		return -EINVAL;
	mlk_enc_uvar(e, code->number);
	mlk_enc_uvar(e, code->tgid);
	mlk_enc_u8(e, (uint8_t)code->language);
	mlk_enc_str(e, code->name);
	mlk_enc_str(e, code->file);
	mlk_enc_uvar(e, code->first_line);
	mlk_enc_u8(e, (uint8_t)code->line_table);
	mlk_enc_uvar(e, code->lines_len);
	mlk_enc_bytes(e, code->lines, code->lines_len);
	return 0;
}

int mlk_code_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_code *code)
{
	code->number = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	code->tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	code->language = mlk_dec_u8(d);
	code->name = mlk_decode_str(d, text);
	code->file = mlk_decode_str(d, text);
	code->first_line = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX);
	code->line_table = mlk_dec_u8(d);
	code->lines_len = (uint32_t)mlk_dec_uvar_max(d, MLK_MAX_LINES);
	code->lines = mlk_dec_bytes(d, code->lines_len);
	return d->bad || !code->number ? MLK_E_CORRUPT : 0;
}

int mlk_interpreter_encode(struct mlk_enc *e, const struct mlk_interpreter *in)
{
	uint64_t before = 0;

	if (mlk_str_too_long(in->version) || mlk_str_too_long(in->why) ||
	    in->nr_ranges > MAX_RANGES)
		return -EINVAL;
	mlk_enc_uvar(e, in->tgid);
	mlk_enc_u64(e, in->time_ns);
	mlk_enc_u8(e, (uint8_t)in->language);
	mlk_enc_u8(e, in->known != 0);
	mlk_enc_str(e, in->version);
	mlk_enc_str(e, in->why);
	mlk_enc_uvar(e, in->nr_ranges);
	for (uint32_t i = 0; i < in->nr_ranges; i++) {
		if (in->ranges[i].start < before || in->ranges[i].end < in->ranges[i].start)
			return -EINVAL;
		mlk_enc_uvar(e, in->ranges[i].start - before);
		mlk_enc_uvar(e, in->ranges[i].end - in->ranges[i].start);
		before = in->ranges[i].end;
	}
	mlk_enc_uvar(e, MLK_INTERPRETED_NR);
	for (int i = 0; i < MLK_INTERPRETED_NR; i++)
		mlk_enc_uvar(e, in->counts[i]);
	return 0;
}

int mlk_interpreter_decode(struct mlk_dec *d, struct mlk_arena *text, struct mlk_interpreter *in)
{
	uint64_t before = 0, nr;

	*in = (struct mlk_interpreter){.tgid = (uint32_t)mlk_dec_uvar_max(d, UINT32_MAX)};
	in->time_ns = mlk_dec_u64(d);
	in->language = mlk_dec_u8(d);
	in->known = mlk_dec_u8(d) & 1;
	in->version = mlk_decode_str(d, text);
	in->why = mlk_decode_str(d, text);
	in->nr_ranges = (uint32_t)mlk_dec_uvar_max(d, MAX_RANGES);
	for (uint32_t i = 0; i < in->nr_ranges; i++) {
		in->ranges[i].start = before + mlk_dec_uvar(d);
		in->ranges[i].end = in->ranges[i].start + mlk_dec_uvar(d);
		if (in->ranges[i].start < before || in->ranges[i].end < in->ranges[i].start)
			return MLK_E_CORRUPT;
		before = in->ranges[i].end;
	}
	nr = mlk_dec_uvar(d);
	for (uint64_t i = 0; i < nr && !d->bad; i++) {
		uint64_t count = mlk_dec_uvar(d);

		if (i < MLK_INTERPRETED_NR)
			in->counts[i] = count;
	}
	return d->bad ? MLK_E_CORRUPT : 0;
}

const char *mlk_language_text(uint32_t language)
{
	static const char *const texts[] = {
		[MLK_LANGUAGE_PYTHON] = "Python",
		[MLK_LANGUAGE_PHP] = "PHP",
		[MLK_LANGUAGE_RUBY] = "Ruby",
	};

	return language && language < sizeof(texts) / sizeof(texts[0]) ? texts[language]
								       : "an interpreter";
}

const char *mlk_interpreted_text(enum mlk_interpreted count)
{
	static const char *const texts[MLK_INTERPRETED_NR] = {
		[MLK_INTERPRETED_KNOWN] = "allocations with frames",
		[MLK_INTERPRETED_NONE] = "allocations without frames",
		[MLK_INTERPRETED_CUT] = "allocations with too many frames",
		[MLK_INTERPRETED_BROKEN] = "allocations with frames that could not be read",
		[MLK_INTERPRETED_UNNAMED] = "frames whose function was gone",
	};

	return (unsigned int)count < MLK_INTERPRETED_NR ? texts[count] : "unknown";
}
