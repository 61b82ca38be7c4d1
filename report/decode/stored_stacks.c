/* stored_stacks.c - see stored_stacks.h */
#include "report/decode/stored_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"

/* From the unwinder into a trace */

/* Bytes that a stack may take, by doc/trace-format.md 4.11: numbers below 2^32, twice, an address,
 * and flags below 2^14. */
#define STACK_BYTES 22

/* The same of a module, but for its path and its id: their lengths, and where it was. */
#define MODULE_BYTES 16

struct stored_stacks {
	const struct dwunw *dw;
	const struct trace_modules *images;
	/* what was gathered of the current chunk */
	INTERN_OF(struct mlk_unwound_module) modules;
	struct mlk_unwound_stack *stacks;
	uint32_t *allocs;
	size_t nr_stacks, stacks_room, nr_allocs, allocs_room;
	size_t module_bytes; /* of all modules */
	/* by id of the unwinder: the number that it has in this chunk, if it has one */
	struct number *numbers;
	size_t numbers_room;
	uint32_t round; /* of chunks, from 1 */
	uint32_t *path; /* ids that are to get numbers */
	size_t path_room;
};

struct number {
	uint32_t round; /* in which it was given; 0: none was */
	uint32_t number;
};

int stored_stacks_new(struct stored_stacks **out, const struct dwunw *dw,
		      const struct trace_modules *images)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->dw = dw;
	(*out)->images = images;
	return 0;
}

static bool same_stored_module(const void *things, uint32_t number, const void *key)
{
	const struct mlk_unwound_module *x =
		&((const struct stored_stacks *)things)->modules.all[number];
	const struct mlk_unwound_module *y = key;

	return x->bias == y->bias && x->path == y->path && x->id.len == y->id.len &&
	       !memcmp(x->id.bytes, y->id.bytes, x->id.len);
}

/* The number, from 1, of the module of @frame where it was mapped; 0: it lies in none. */
static int module_of(struct stored_stacks *unwound, const struct dwunw_frame *frame,
		     uint32_t *number)
{
	struct mlk_unwound_module key = {.bias = frame->pc - frame->addr};
	struct hash_query query = {.things = unwound, .key = &key, .equal = same_stored_module};
	uint32_t image;
	int added;

	*number = 0;
	if (!trace_modules_number(unwound->images, frame->module, &image))
		return 0;
	key.id = *trace_modules_id(unwound->images, frame->module);
	key.path = unwound->images->all[image].path;
	query.hash = hash_word(image, key.bias);
	added = intern(&unwound->modules.table, &query, &key, sizeof(key), number);
	++*number;
	if (added > 0) /* functions of generated code are modules, too: there may be many */
		unwound->module_bytes += MODULE_BYTES + key.id.len + strlen(key.path);
	return added < 0 ? added : 0;
}

/* Give stack @id, whose caller has a number, the next one. */
static int number_one(struct stored_stacks *unwound, uint32_t id)
{
	struct mlk_unwound_stack stack = {0};
	struct dwunw_frame frame;
	int err = 0;

	if (dwunw_stack_frames(unwound->dw, id, &frame, 1)) {
		stack.caller = unwound->numbers[dwunw_stack_parent(unwound->dw, id)].number;
		stack.pc = frame.pc;
		stack.flags = frame.flags & ~(uint32_t)DWUNW_FRAME_FLAG_PARTIAL;
		err = module_of(unwound, &frame, &stack.module);
	} else {
		stack.flags = dwunw_stack_status(unwound->dw, id);
	}
	if (!err)
		err = array_append(&unwound->stacks, &unwound->nr_stacks, &unwound->stacks_room,
				   &stack, sizeof(stack));
	unwound->numbers[id] = (struct number){unwound->round, (uint32_t)unwound->nr_stacks};
	return err;
}

static bool has_number(const struct stored_stacks *unwound, uint32_t id)
{
	return unwound->numbers[id].round == unwound->round;
}

/* Give stack @id and those of its callers numbers that have none yet, the outermost first. */
static int number_all(struct stored_stacks *unwound, uint32_t id)
{
	size_t nr = 0;
	int err = 0;

	for (; !err && id && !has_number(unwound, id); id = dwunw_stack_parent(unwound->dw, id))
		err = array_append(&unwound->path, &nr, &unwound->path_room, &id, sizeof(id));
	while (!err && nr)
		err = number_one(unwound, unwound->path[--nr]);
	return err;
}

void stored_stacks_begin(struct stored_stacks *unwound)
{
	unwound->round++;
	unwound->nr_stacks = unwound->nr_allocs = unwound->module_bytes = 0;
	intern_release(&unwound->modules.table);
}

int stored_stacks_add(struct stored_stacks *unwound, uint32_t id, uint32_t *number)
{
	/* know of each id returned so far whether it has a number */
	int err = array_cover(&unwound->numbers, &unwound->numbers_room,
			      dwunw_stack_limit(unwound->dw), sizeof(*unwound->numbers));

	if (!err && !has_number(unwound, id))
		err = number_all(unwound, id);
	*number = err ? 0 : unwound->numbers[id].number;
	return err;
}

size_t stored_stacks_bytes(const struct stored_stacks *unwound)
{
	return unwound->nr_stacks * STACK_BYTES + unwound->module_bytes;
}

void stored_stacks_get(const struct stored_stacks *unwound, struct mlk_unwound *to)
{
	*to = (struct mlk_unwound){
		.nr_modules = unwound->modules.nr,
		.nr_stacks = unwound->nr_stacks,
		.nr_allocs = unwound->nr_allocs,
		.modules = unwound->modules.all,
		.stacks = unwound->stacks,
		.allocs = unwound->allocs,
	};
}

int stored_stacks_gather(struct stored_stacks *unwound, const struct batch *batch,
			 const uint32_t *ids, struct mlk_unwound *to)
{
	int err = 0;

	stored_stacks_begin(unwound);
	for (size_t i = 0; !err && i < batch->nr_events; i++) {
		uint32_t id = batch->events[i].stack, number;

		if (batch->events[i].kind != MLK_ALLOC)
			continue;
		err = stored_stacks_add(unwound, ids ? ids[id] : id, &number);
		if (!err)
			err = array_append(&unwound->allocs, &unwound->nr_allocs,
					   &unwound->allocs_room, &number, sizeof(number));
	}
	stored_stacks_get(unwound, to);
	return err;
}

void stored_stacks_free(struct stored_stacks *unwound)
{
	if (!unwound)
		return;
	intern_release(&unwound->modules.table);
	free(unwound->stacks);
	free(unwound->allocs);
	free(unwound->numbers);
	free(unwound->path);
	free(unwound);
}

/* From a trace into the unwinder */

/* The frame of @stack, whose module is called @module. */
static struct dwunw_frame frame_of(const struct mlk_unwound *unwound,
				   const struct mlk_unwound_stack *stack, const uint32_t *modules)
{
	struct dwunw_frame frame = {
		.pc = stack->pc,
		.addr = stack->pc,
		.module = DWUNW_NO_MODULE,
		.flags = stack->flags,
	};

	if (stack->module) {
		frame.addr -= unwound->modules[stack->module - 1].bias;
		frame.module = modules[stack->module - 1];
	}
	return frame;
}

static int tell_stacks(const struct mlk_unwound *unwound, const uint32_t *modules,
		       struct batch *batch)
{
	int err = 0;

	for (size_t i = 0; !err && i < unwound->nr_stacks; i++) {
		const struct mlk_unwound_stack *from = &unwound->stacks[i];
		struct batch_stack stack = {.id = (uint32_t)i + 1, .caller = from->caller};

		if (from->caller)
			stack.frame = frame_of(unwound, from, modules);
		else if (from->flags < DWUNW_STATUS_NR)
			stack.status = (enum dwunw_status)from->flags;
		else
			return MLK_E_CORRUPT;
		err = batch_add_stack(batch, &stack);
	}
	return err;
}

int stored_stacks_report(const struct mlk_unwound *unwound, const struct trace_modules *images,
			 struct batch *batch)
{
	uint32_t *modules = calloc(unwound->nr_modules + 1, sizeof(*modules));
	int err = 0;

	if (!modules)
		return -ENOMEM;
	for (size_t i = 0; !err && i < unwound->nr_modules; i++) {
		const struct mlk_unwound_module *module = &unwound->modules[i];

		if (!trace_modules_find(images, &module->id, module->path, &modules[i]))
			err = MLK_E_CORRUPT;
	}
	if (!err)
		err = tell_stacks(unwound, modules, batch);
	free(modules);
	return err;
}
