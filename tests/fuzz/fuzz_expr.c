/* fuzz_expr.c - an input as a DWARF expression
 *
 * The first byte says which registers hold a value, and whether the CFA is there.  What the
 * expression may read is a stack whose every byte is its own place, so that each answer can be
 * checked: no other memory can have been read.
 */
#include "tests/fuzz/fuzz.h"
#include "unwind/cfi/expr.h"

#define STACK 0x7000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint64_t cfa = STACK + 0x40;
	uint8_t *bytes = malloc(128), *expr = malloc(size);
	uint64_t reg[DWUNW_MAX_ARCH_REGS], value = 1, again = 2;
	const struct dwunw_stack stack = {STACK, bytes, 128};
	struct dwunw_expr_env env = {.reg = reg, .stack = &stack, .bias = 1ull << 32};
	struct fuzz_in in = {data, data + size};
	bool is_value = false, is_value_again = true;
	enum dwunw_fetch fetch;
	uint64_t how = fuzz_take(&in, 1);

	FUZZ_CHECK(bytes && (expr || !size));
	for (size_t i = 0; i < 128; i++)
		bytes[i] = (uint8_t)i;
	for (uint64_t i = 0; i < DWUNW_MAX_ARCH_REGS; i++)
		reg[i] = STACK + 8 * i;
	env.known = how & 1 ? 0x1ffff : 0x10080;
	env.cfa = how & 2 ? &cfa : NULL;
	size = fuzz_left(&in);
	if (size)
		memcpy(expr, in.at, size);
	fetch = dwunw_expr_eval(&env, expr, size, &value, &is_value);
	FUZZ_CHECK(fetch <= DWUNW_FETCH_BAD && (!fetch || value == 1));
	FUZZ_CHECK(fetch || size || env.cfa);
	/* The same once more: nothing is kept from one time to the next. */
	FUZZ_CHECK(dwunw_expr_eval(&env, expr, size, &again, &is_value_again) == fetch);
	FUZZ_CHECK(fetch || (value == again && is_value == is_value_again));
	free(expr);
	free(bytes);
	return 0;
}
