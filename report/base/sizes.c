/* sizes.c - see sizes.h */
#include "report/base/sizes.h"

#include <math.h>
#include <stdio.h>

#include "report/base/text.h"

static bool all_exact;

void sizes_set_exact(bool exact)
{
	all_exact = exact;
}

/* @bytes, of which there are SIZE_EXACT_MAX or more, to three digits at least. */
static void put_unit(char *buf, size_t room, uint64_t bytes)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double size = (double)bytes / 1024;
	size_t i = 0;

	/* what would be rounded up to 1024 is one of the next unit */
	for (; size >= 1023.95 && i + 1 < sizeof(units) / sizeof(*units); i++)
		size /= 1024;
	snprintf(buf, room, size < 9.995 ? "%.2f %s" : "%.1f %s", size, units[i]);
}

/* With @sign before it, and of an exact one @unit behind it. */
static const char *put_size(char buf[SIZE_TEXT_MAX], const char *sign, uint64_t bytes,
			    const char *unit)
{
	char text[TEXT_NUMBER_MAX];

	if (all_exact || bytes < SIZE_EXACT_MAX) {
		snprintf(buf, SIZE_TEXT_MAX, "%s%s%s", sign, text_number(text, bytes), unit);
		return buf;
	}
	put_unit(text, sizeof(text), bytes);
	snprintf(buf, SIZE_TEXT_MAX, "%s%s", sign, text);
	return buf;
}

static const char *text_unit(uint64_t bytes)
{
	return bytes == 1 ? " byte" : " bytes";
}

static const char *cell_unit(void)
{
	return all_exact ? "" : " B";
}

const char *size_text(char buf[SIZE_TEXT_MAX], uint64_t bytes)
{
	return put_size(buf, "", bytes, text_unit(bytes));
}

const char *size_cell(char buf[SIZE_TEXT_MAX], uint64_t bytes)
{
	return put_size(buf, "", bytes, cell_unit());
}

/* How far @after is from @before, with the sign of that. */
static uint64_t distance(uint64_t before, uint64_t after, const char **sign)
{
	*sign = after < before ? "-" : "+";
	return after < before ? before - after : after - before;
}

const char *size_change_text(char buf[SIZE_TEXT_MAX], uint64_t before, uint64_t after)
{
	const char *sign;
	uint64_t bytes = distance(before, after, &sign);

	return put_size(buf, sign, bytes, text_unit(bytes));
}

const char *size_change_cell(char buf[SIZE_TEXT_MAX], uint64_t before, uint64_t after)
{
	const char *sign;
	uint64_t bytes = distance(before, after, &sign);

	return put_size(buf, sign, bytes, cell_unit());
}

/* The amount of @rate, with its sign. */
static uint64_t whole(double rate, const char **sign)
{
	double size = (rate < 0 ? -rate : rate) + 0.5;

	*sign = !(size >= 1) ? "" : rate < 0 ? "-" : "+";
	/* what is no number is not below it, either */
	return !(size < 0x1p63) ? (uint64_t)1 << 63 : (uint64_t)size;
}

const char *size_rate_cell(char buf[SIZE_TEXT_MAX], double rate)
{
	const char *sign;
	uint64_t bytes = whole(rate, &sign);

	return put_size(buf, sign, bytes, cell_unit());
}

const char *size_rate_text(char buf[SIZE_TEXT_MAX], double rate)
{
	const char *sign;
	uint64_t bytes = whole(rate, &sign);

	return put_size(buf, sign, bytes, text_unit(bytes));
}

int64_t size_rate_whole(double rate)
{
	return (int64_t)llround(fmax(fmin(rate, 0x1p53), -0x1p53));
}

const char *size_title(void)
{
	return all_exact ? "bytes" : "size";
}

const char *size_rate_title(const char *exact, const char *other)
{
	return all_exact ? exact : other;
}
