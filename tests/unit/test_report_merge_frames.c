/* test_report_merge_frames.c - interpreted frames in place of those of their interpreter
 *
 * A stack is a string, the innermost frame first: n is native, e the interpreter, g generated code,
 * and capital letters are interpreted functions.  Those of an event are told with a bar behind the
 * outermost of each call; 0 is a call that has none.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/decode/merge_frames.h"
#include "unwind/dwunw_stacks.h"

#define MOST   32
#define EVAL   0x2000u
#define NATIVE 0x1000u

static struct merged_stacks merged;

/* Intern the stack @text of @dw. */
static uint32_t make_stack(struct dwunw *dw, const char *text, enum dwunw_status status)
{
	struct dwunw_frame frames[MOST];
	size_t nr = strlen(text);
	uint32_t id;

	for (size_t i = 0; i < nr; i++) {
		uint64_t pc = text[i] == 'e' ? EVAL + 8 : NATIVE + i;

		frames[i] = (struct dwunw_frame){.pc = pc,
						 .addr = pc,
						 .module = DWUNW_NO_MODULE,
						 .flags = i ? DWUNW_FRAME_FLAG_RETURN : 0};
		if (text[i] == 'g')
			frames[i].flags |= DWUNW_FRAME_FLAG_GENERATED;
	}
	assert_int_equal(dwunw_stack_intern(dw, frames, nr, status, &id), 0);
	return id;
}

/* Fill @to with the frames that @text tells.  Returns how many. */
static uint32_t make_frames(struct mlk_code_frame *to, const char *text)
{
	uint32_t nr = 0;

	for (; *text; text++)
		if (*text == '|')
			to[nr - 1].at |= MLK_CODE_FRAME_ENTRY;
		else
			to[nr++] = (struct mlk_code_frame){
				*text == '0' ? 0 : (uint32_t)(*text - 'A' + 1),
				*text == '0' ? 0 : 5 << MLK_CODE_FRAME_SHIFT};
	return nr;
}

static void print_stack(char *to, const struct dwunw *dw, uint32_t id)
{
	struct dwunw_frame frames[MOST];
	size_t nr = dwunw_stack_frames(dw, id, frames, MOST);

	for (size_t i = 0; i < nr; i++)
		if (interpreted_is(&frames[i]))
			to[i] = (char)('A' - 1 + (frames[i].pc >> 28 & 0xff));
		else if (frames[i].flags & DWUNW_FRAME_FLAG_GENERATED)
			to[i] = 'g';
		else
			to[i] = frames[i].pc >= EVAL ? 'e' : 'n';
	to[nr] = '\0';
}

static void assert_merged(uint32_t language, enum dwunw_status status, const char *native,
			  const char *interpreted, const char *expected)
{
	const struct mlk_interpreter of = {.tgid = 47,
					   .language = language,
					   .known = 1,
					   .version = "",
					   .why = "",
					   .nr_ranges = 1,
					   .ranges = {{EVAL, EVAL + 16}}};
	struct mlk_code_frame frames[MOST];
	struct mlk_event event = {.tgid = 47, .time_ns = 1, .frames_number = 1, .frames = frames};
	struct interpreted in = {0};
	char found[MOST + 1];
	struct dwunw *dw;
	uint32_t id;

	assert_int_equal(dwunw_new(&dw), 0);
	assert_int_equal(interpreted_note(&in, &of), 0);
	id = make_stack(dw, native, status);
	event.nr_frames = make_frames(frames, interpreted);
	merge_frames_begin(&merged);
	assert_int_equal(merge_frames(&merged, dw, &in, &event, &id), 0);
	print_stack(found, dw, id);
	assert_string_equal(found, expected);
	assert_int_equal(dwunw_stack_status(dw, id), status);
	interpreted_release(&in);
	dwunw_free(dw);
}

static void each_call_is_replaced(void **state)
{
	(void)state;
	assert_merged(MLK_LANGUAGE_PYTHON, DWUNW_STATUS_ENDED, "nennen", "AB|C|", "nABnnCn");
	assert_merged(MLK_LANGUAGE_PHP, DWUNW_STATUS_ENDED, "nen", "ABC|", "nABCn");
	/* a call that has no frame keeps its interpreter's */
	assert_merged(MLK_LANGUAGE_PYTHON, DWUNW_STATUS_ENDED, "nenen", "0|A|", "nenAn");
}

static void what_is_left_goes_behind_the_last(void **state)
{
	(void)state;
	assert_merged(MLK_LANGUAGE_PYTHON, DWUNW_STATUS_ENDED, "nenn", "A|B|", "nABnn");
	/* or to the end, where callers are not known */
	assert_merged(MLK_LANGUAGE_PYTHON, DWUNW_STATUS_TRUNCATED, "nenn", "A|B|", "nAnnB");
	assert_merged(MLK_LANGUAGE_PYTHON, DWUNW_STATUS_TRUNCATED, "nn", "A|", "nnA");
	/* there are fewer than frames of the interpreter */
	assert_merged(MLK_LANGUAGE_PYTHON, DWUNW_STATUS_ENDED, "nenen", "A|", "nAnen");
}

static void generated_code_of_ruby_is_a_call(void **state)
{
	(void)state;
	assert_merged(MLK_LANGUAGE_RUBY, DWUNW_STATUS_ENDED, "ngnen", "AB|C|", "nABnCn");
	/* called by the interpreter's frame, it is one call with it */
	assert_merged(MLK_LANGUAGE_RUBY, DWUNW_STATUS_ENDED, "nggenen", "AB|C|", "nABnCn");
	assert_merged(MLK_LANGUAGE_RUBY, DWUNW_STATUS_ENDED, "ngn", "", "ngn");
	/* of others it is no interpreter's */
	assert_merged(MLK_LANGUAGE_PHP, DWUNW_STATUS_ENDED, "ngnen", "A|", "ngnAn");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_is_replaced),
		cmocka_unit_test(what_is_left_goes_behind_the_last),
		cmocka_unit_test(generated_code_of_ruby_is_a_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
