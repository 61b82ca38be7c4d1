/* interpreted.c - see interpreted.h */
#include "report/trace/interpreted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/trace/code_lines.h"

#define PLACE_BITS 28 /* of a pc: one more than the bytes before the instruction, by two */
#define NO_PC	   (9ull << 60)

static void release_code(struct mlk_code *code)
{
	free((void *)(uintptr_t)code->name);
	free((void *)(uintptr_t)code->file);
	free((void *)(uintptr_t)code->lines);
}

int interpreted_note_code(struct interpreted *in, const struct mlk_code *code)
{
	struct interpreted_code copy = {.number = code->number, .code = *code};
	uint8_t *lines = malloc(code->lines_len + 1);
	uint32_t number;
	int added = -ENOMEM;

	if (lines && code->lines_len)
		memcpy(lines, code->lines, code->lines_len);
	copy.code.lines = lines;
	copy.code.name = strdup(code->name);
	copy.code.file = strdup(code->file);
	if (lines && copy.code.name && copy.code.file)
		added = intern_pair(&in->table, &copy, sizeof(copy), &number);
	if (added <= 0)
		release_code(&copy.code);
	return added < 0 ? added : 0;
}

static void release_interpreter(struct mlk_interpreter *of)
{
	free((void *)(uintptr_t)of->version);
	free((void *)(uintptr_t)of->why);
}

int interpreted_note(struct interpreted *in, const struct mlk_interpreter *interpreter)
{
	struct mlk_interpreter copy = *interpreter;
	int err = -ENOMEM;

	copy.version = strdup(interpreter->version);
	copy.why = strdup(interpreter->why);
	for (size_t i = 0; copy.version && copy.why && i < in->nr_of; i++)
		if (in->all_of[i].tgid == copy.tgid && in->all_of[i].time_ns == copy.time_ns) {
			release_interpreter(&in->all_of[i]);
			in->all_of[i] = copy;
			return 0;
		}
	if (copy.version && copy.why)
		err = array_append(&in->all_of, &in->nr_of, &in->of_room, &copy, sizeof(copy));
	if (err)
		release_interpreter(&copy);
	return err;
}

const struct mlk_interpreter *interpreted_find(const struct interpreted *in, uint32_t tgid,
					       uint64_t time_ns)
{
	const struct mlk_interpreter *found = NULL;

	for (size_t i = 0; i < in->nr_of; i++) {
		const struct mlk_interpreter *of = &in->all_of[i];

		if (of->tgid == tgid && (!found || of->time_ns <= time_ns))
			found = of;
	}
	return found;
}

struct dwunw_frame interpreted_frame(const struct mlk_code_frame *frame)
{
	uint64_t place = frame->at >> MLK_CODE_FRAME_SHIFT & ((1u << PLACE_BITS) - 1);
	uint64_t pc = NO_PC | (uint64_t)frame->code << PLACE_BITS | place;

	return (struct dwunw_frame){.pc = pc, .addr = pc, .module = DWUNW_NO_MODULE};
}

/* By language; of one that this version does not know the first. */
static const char *const modules[] = {"[interpreted]", "[python]", "[php]", "[ruby]"};
static const char *const unknown[] = {"[unknown interpreted function]", "[unknown Python function]",
				      "[unknown PHP function]", "[unknown Ruby method]"};

#define LANGUAGES (sizeof(modules) / sizeof(modules[0]))

/* The function of @frame; NULL: it is not known. */
static const struct mlk_code *code_of(const struct interpreted *in, const struct dwunw_frame *frame)
{
	const uint32_t key[] = {(uint32_t)(frame->pc >> PLACE_BITS), 0};
	uint32_t at;

	return intern_find_pair(&in->table, key, sizeof(*in->all), &at) ? &in->all[at].code : NULL;
}

/* The language of @code; of one that is not known that of the first interpreter. */
static uint32_t language_of(const struct interpreted *in, const struct mlk_code *code)
{
	uint32_t language = code ? code->language : in->nr_of ? in->all_of[0].language : 0;

	return language < LANGUAGES ? language : 0;
}

const char *interpreted_module(const struct interpreted *in, const struct dwunw_frame *frame)
{
	return modules[language_of(in, code_of(in, frame))];
}

void interpreted_symbol(const struct interpreted *in, const struct dwunw_frame *frame,
			struct dwunw_symbol *symbol)
{
	uint32_t place = frame->pc & ((1u << PLACE_BITS) - 1);
	const struct mlk_code *code = code_of(in, frame);

	*symbol = (struct dwunw_symbol){.function = unknown[language_of(in, code)]};
	if (!code)
		return;
	symbol->function = code->name;
	symbol->offset = place < 2 ? 0 : place - 2;
	symbol->file = code->file[0] ? code->file : NULL;
	symbol->line = place < 2 ? code->first_line : code_line(code, place - 2);
}

void interpreted_release(struct interpreted *in)
{
	for (size_t i = 0; i < in->nr; i++)
		release_code(&in->all[i].code);
	for (size_t i = 0; i < in->nr_of; i++)
		release_interpreter(&in->all_of[i]);
	intern_release(&in->table);
	free(in->all_of);
}
