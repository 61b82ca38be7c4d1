/* inject_plan.h - plans of how made up functions would be changed */
#ifndef INJECT_PLAN_H
#define INJECT_PLAN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/inject/entry.h"

#define AT    0x10000000ull
#define SLOT  0x10100000ull
#define MOVED 0x10200000ull

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* Plan with a copy of @bytes in memory of just its size, so that reading behind it is found out. */
static const char *plan_exact(struct inject_entry *out, struct inject_code code)
{
	uint8_t *copy = malloc(code.len);
	const char *why;

	assert_non_null(copy);
	memcpy(copy, code.bytes, code.len);
	code.at = AT;
	code.bytes = copy;
	why = inject_entry_plan(out, &code, SLOT, MOVED);
	free(copy);
	return why;
}

#endif
