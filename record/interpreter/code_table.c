/* code_table.c - see code_table.h */
#include "record/interpreter/code_table.h"

#include <stdlib.h>
#include <string.h>

#include "array.h"

static size_t first_slot(const struct code_table *t, uint64_t address, uint32_t digest)
{
	uint64_t hash = (address ^ (uint64_t)digest << 32) * 0x9e3779b97f4a7c15ull;

	return hash >> 32 & (t->nr_slots - 1);
}

/* The slot with that function, or the free one where it would be. */
static uint32_t *find_slot(const struct code_table *t, uint64_t address, uint32_t digest)
{
	size_t i = first_slot(t, address, digest);

	for (; t->slots[i]; i = (i + 1) & (t->nr_slots - 1)) {
		const struct known_code *known = &t->all[t->slots[i] - 1];

		if (known->address == address && known->digest == digest)
			break;
	}
	return &t->slots[i];
}

uint32_t code_table_find(const struct code_table *t, uint64_t address, uint32_t digest)
{
	return t->nr_slots ? *find_slot(t, address, digest) : 0;
}

/* Have the slots at most half full, with one more. */
static int grow_slots(struct code_table *t)
{
	size_t more = t->nr_slots ? 2 * t->nr_slots : 1024;
	uint32_t *slots;

	if (2 * (t->nr + 1) <= t->nr_slots)
		return 0;
	slots = calloc(more, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(t->slots);
	t->slots = slots;
	t->nr_slots = more;
	for (size_t i = 0; i < t->nr; i++)
		*find_slot(t, t->all[i].address, t->all[i].digest) = (uint32_t)i + 1;
	return 0;
}

static void release_code(const struct mlk_code *code)
{
	free((void *)(uintptr_t)code->name);
	free((void *)(uintptr_t)code->file);
	free((void *)(uintptr_t)code->lines);
}

/* Have @code name no file, and no lines of one.  False: no memory. */
static bool leave_out_file(struct mlk_code *code)
{
	char *none = strdup("");

	if (!none)
		return false;
	free((void *)(uintptr_t)code->file);
	free((void *)(uintptr_t)code->lines);
	code->file = none;
	code->lines = NULL;
	code->lines_len = code->first_line = 0;
	return true;
}

uint32_t code_table_add(struct code_table *t, uint64_t address, uint32_t digest,
			const struct mlk_code *code)
{
	struct known_code known = {.address = address, .digest = digest, .gone = !code};

	if (code)
		known.code = *code;
	if (t->nr >= CODE_TABLE_MAX || grow_slots(t) ||
	    grow_array(&t->all, t->nr, &t->room, sizeof(*t->all)) ||
	    (code && t->no_files && !leave_out_file(&known.code))) {
		release_code(&known.code);
		return 0;
	}
	known.code.number = (uint32_t)t->nr + 1;
	*find_slot(t, address, digest) = known.code.number;
	t->all[t->nr++] = known;
	return known.code.number;
}

int code_table_write(struct code_table *t, uint32_t number, struct mlk_writer *w)
{
	struct known_code *known = &t->all[number - 1];

	if (known->written || known->gone)
		return 0;
	known->written = true;
	return mlk_writer_code(w, &known->code);
}

void code_table_begin_trace(struct code_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		t->all[i].written = false;
}

void code_table_release(struct code_table *t)
{
	for (size_t i = 0; i < t->nr; i++)
		release_code(&t->all[i].code);
	free(t->all);
	free(t->slots);
	*t = (struct code_table){0};
}
