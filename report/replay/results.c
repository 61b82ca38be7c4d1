/* results.c - see results.h
 *
 * The structures are stored as they are: a cache is read only by the program that wrote it.  What
 * they say is examined all the same, for anyone who owns a trace may have made its cache.
 */
#include "report/replay/results.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/unwound.h"
#include "report/decode/stored_stacks.h"
#include "report/live/live_save.h"
#include "report/stats/growth_save.h"

/* What comes first. */
struct saved_results {
	uint64_t sizes; /* a digest of those of all structures that follow */
	uint64_t status_counts[DWUNW_STATUS_NR];
	struct live_amount now, peak;
	uint64_t nr_peaks;
};

/* Nothing of these is undefined, so that what is written is the same each time. */

/* A module, before its path. */
struct saved_module {
	uint64_t bias, path_len, id_len;
	uint8_t id[MLK_MAX_ID];
};

/* A frame, with the number of its callers. */
struct saved_frame {
	uint64_t pc;
	uint32_t caller;
	uint16_t module, flags;
};

/* A stack. */
struct saved_stack {
	uint32_t frames; /* their number */
	uint32_t process;
	uint64_t allocs, temporary, first_ns, last_ns;
	struct live_amount allocated, freed, peak;
};

static uint64_t digest_of_sizes(void)
{
	static const size_t sizes[] = {
		sizeof(struct saved_results),  sizeof(struct saved_module),
		sizeof(struct saved_frame),    sizeof(struct saved_stack),
		sizeof(struct live_totals),    sizeof(struct growth_slice),
		sizeof(struct growth_age),     sizeof(struct replaced_pair),
		sizeof(struct replaced_times),
	};
	uint64_t digest = 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		digest = digest * 509 + sizes[i];
	return digest;
}

/* All stacks, with the numbers that stored_stacks_add() gives. */
static void save_frames(const struct stored_stacks *stored, struct save *to)
{
	struct mlk_unwound unwound;

	stored_stacks_get(stored, &unwound);
	/* functions of generated code are modules: so many are no reason for larger frames */
	to->failed |= unwound.nr_modules > UINT16_MAX;
	save_put(to, &(uint64_t){unwound.nr_modules}, sizeof(uint64_t));
	for (size_t i = 0; i < unwound.nr_modules; i++) {
		const struct mlk_unwound_module *module = &unwound.modules[i];
		struct saved_module saved = {.bias = module->bias,
					     .path_len = strlen(module->path),
					     .id_len = module->id.len};

		memcpy(saved.id, module->id.bytes, module->id.len);
		save_put(to, &saved, sizeof(saved));
		save_put(to, module->path, saved.path_len + 1);
	}
	save_put(to, &(uint64_t){unwound.nr_stacks}, sizeof(uint64_t));
	for (size_t i = 0; i < unwound.nr_stacks; i++) {
		const struct mlk_unwound_stack *stack = &unwound.stacks[i];
		const struct saved_frame saved = {.pc = stack->pc,
						  .caller = stack->caller,
						  .module = (uint16_t)stack->module,
						  .flags = (uint16_t)stack->flags};

		save_put(to, &saved, sizeof(saved));
	}
}

static void save_stack(struct save *to, const struct stack *stack, uint32_t frames)
{
	const struct saved_stack saved = {.frames = frames,
					  .process = stack->process,
					  .allocs = stack->allocs,
					  .temporary = stack->temporary,
					  .first_ns = stack->first_ns,
					  .last_ns = stack->last_ns,
					  .allocated = stack->allocated,
					  .freed = stack->freed,
					  .peak = stack->peak};

	save_put(to, &saved, sizeof(saved));
}

static void save_stacks(const struct replay *leaks, struct save *to)
{
	const struct stacks *stacks = leaks->stacks;
	uint32_t *numbers = calloc(stacks->nr + 1, sizeof(*numbers));
	struct stored_stacks *stored;
	int err = stored_stacks_new(&stored, leaks->dw, leaks->images);

	if (!err && !numbers)
		err = -ENOMEM;
	if (!err)
		stored_stacks_begin(stored);
	for (size_t i = 0; !err && i < stacks->nr; i++)
		err = stored_stacks_add(stored, stacks->all[i].id, &numbers[i]);
	if (!err)
		save_frames(stored, to);
	save_put(to, &(uint64_t){stacks->nr}, sizeof(uint64_t));
	for (size_t i = 0; !err && i < stacks->nr; i++)
		save_stack(to, &stacks->all[i], numbers[i]);
	to->failed |= err != 0;
	stored_stacks_free(stored);
	free(numbers);
}

uint64_t results_bytes(const struct replay *leaks)
{
	return (uint64_t)leaks->stacks->nr *
		       (sizeof(struct saved_stack) + sizeof(struct saved_frame)) +
	       live_save_bytes(leaks->live);
}

void results_save(const struct replay *leaks, const struct growth *growth, struct save *to)
{
	struct saved_results all = {.sizes = digest_of_sizes(),
				    .now = leaks->figures->now,
				    .peak = leaks->figures->peak,
				    .nr_peaks = leaks->figures->nr_peaks};

	memcpy(all.status_counts, leaks->status_counts, sizeof(all.status_counts));
	save_put(to, &all, sizeof(all));
	save_stacks(leaks, to);
	live_save(leaks->live, to);
	if (growth)
		growth_save(growth, to);
}

/* A module of frames, as @leaks calls it. */
struct module {
	uint64_t bias;
	uint32_t number;
};

static int load_module(const struct replay *leaks, struct load *from, struct module *module)
{
	struct saved_module saved;
	struct mlk_id id = {0};
	const char *path;

	if (!load_get(from, &saved, sizeof(saved)) || saved.path_len == SIZE_MAX ||
	    saved.id_len > sizeof(saved.id))
		return MLK_E_CORRUPT;
	path = load_bytes(from, saved.path_len + 1, 1);
	if (!path || path[saved.path_len])
		return MLK_E_CORRUPT;
	id.len = (uint8_t)saved.id_len;
	memcpy(id.bytes, saved.id, saved.id_len);
	module->bias = saved.bias;
	return trace_modules_find(leaks->images, &id, path, &module->number) ? 0 : MLK_E_CORRUPT;
}

/* The modules in *@modules, which the caller frees. */
static int load_modules(const struct replay *leaks, struct load *from, struct module **modules,
			size_t *nr)
{
	int err = 0;

	*nr = load_count(from, sizeof(struct saved_module));
	*modules = calloc(*nr + 1, sizeof(**modules));
	if (!*modules)
		return -ENOMEM;
	for (size_t i = 0; !err && i < *nr; i++)
		err = load_module(leaks, from, &(*modules)[i]);
	return err;
}

/* Give the unwinder @saved, a frame behind its callers, of which *@ids are the numbers. */
static int add_frame(struct dwunw *dw, const struct saved_frame *saved,
		     const struct module *modules, const uint32_t *ids, uint32_t *id)
{
	struct dwunw_frame frame = {.pc = saved->pc,
				    .addr = saved->pc,
				    .module = DWUNW_NO_MODULE,
				    .flags = saved->flags};

	if (!saved->caller)
		return saved->flags < DWUNW_STATUS_NR
			       ? dwunw_stack_intern(dw, NULL, 0, saved->flags, id)
			       : MLK_E_CORRUPT;
	if (saved->module) {
		frame.addr -= modules[saved->module - 1].bias;
		frame.module = modules[saved->module - 1].number;
	}
	return dwunw_stack_add(dw, ids[saved->caller], &frame, id);
}

/* Of what the frames before it are, is @saved number @number one that there can be?  Its depth is
 * noted then. */
static bool is_frame(const struct saved_frame *saved, size_t number, size_t nr_modules,
		     uint16_t *depths)
{
	if (saved->caller >= number || saved->module > nr_modules)
		return false;
	depths[number] = saved->caller ? (uint16_t)(depths[saved->caller] + 1) : 0;
	return depths[number] <= MLK_MAX_FRAMES;
}

/* Give the unwinder all frames; *@ids, which the caller frees, are what it calls them, from 1 to
 * *@nr. */
static int load_frames(struct replay *leaks, struct load *from, uint32_t **ids, size_t *nr)
{
	struct module *modules = NULL;
	struct saved_frame saved;
	uint16_t *depths;
	size_t nr_modules;
	int err = load_modules(leaks, from, &modules, &nr_modules);

	*nr = err ? 0 : load_count(from, sizeof(saved));
	*ids = malloc((*nr + 1) * sizeof(**ids));
	depths = malloc((*nr + 1) * sizeof(*depths));
	if (!err && (!*ids || !depths))
		err = -ENOMEM;
	for (size_t i = 1; !err && i <= *nr; i++) {
		load_get(from, &saved, sizeof(saved));
		err = is_frame(&saved, i, nr_modules, depths)
			      ? add_frame(leaks->dw, &saved, modules, *ids, &(*ids)[i])
			      : MLK_E_CORRUPT;
	}
	free(depths);
	free(modules);
	return err;
}

/* Add the stack @saved, whose frames have the @nr @ids by their numbers. */
static int add_stack(struct replay *leaks, const struct saved_stack *saved, const uint32_t *ids,
		     size_t nr)
{
	const size_t before = leaks->stacks->nr;
	struct stack *stack;
	uint32_t number;
	int err;

	/* one without frames is a number, too: that of how it ended */
	if (!saved->frames || saved->frames > nr)
		return MLK_E_CORRUPT;
	err = stacks_add(leaks->stacks, ids[saved->frames], saved->process, &number);
	if (err)
		return err;
	if (number != before) /* it came twice */
		return MLK_E_CORRUPT;
	stack = &leaks->stacks->all[number];
	stack->allocs = saved->allocs;
	stack->allocated = saved->allocated;
	stack->freed = saved->freed;
	stack->peak = saved->peak;
	stack->temporary = saved->temporary;
	stack->first_ns = saved->first_ns;
	stack->last_ns = saved->last_ns;
	/* at the end of a replay each has its share of the peak */
	stack->peaks_seen = leaks->figures->nr_peaks;
	return 0;
}

static int load_stacks(struct replay *leaks, struct load *from)
{
	uint32_t *ids = NULL;
	struct saved_stack stack;
	size_t nr = 0;
	int err = load_frames(leaks, from, &ids, &nr);

	for (size_t left = err ? 0 : load_count(from, sizeof(stack)); !err && left; left--) {
		load_get(from, &stack, sizeof(stack));
		err = add_stack(leaks, &stack, ids, nr);
	}
	free(ids);
	return err ? err : from->bad ? MLK_E_CORRUPT : 0;
}

/* Each stack is of a process that there is. */
static bool has_processes(const struct replay *leaks)
{
	const size_t nr = live_nr_processes(leaks->live);

	for (size_t i = 0; i < leaks->stacks->nr; i++)
		if (leaks->stacks->all[i].process >= nr)
			return false;
	return true;
}

int results_load(struct replay *leaks, struct growth *growth, struct load from)
{
	struct saved_results all;
	int err;

	if (!load_get(&from, &all, sizeof(all)) || all.sizes != digest_of_sizes())
		return MLK_E_CORRUPT;
	memcpy(leaks->status_counts, all.status_counts, sizeof(all.status_counts));
	leaks->figures->now = all.now;
	leaks->figures->peak = all.peak;
	leaks->figures->nr_peaks = all.nr_peaks;
	err = load_stacks(leaks, &from);
	if (!err)
		err = live_load(leaks->live, &from, leaks->stacks->nr);
	if (!err && !has_processes(leaks))
		err = MLK_E_CORRUPT;
	if (!err && growth)
		err = growth_load(growth, &from, leaks->stacks->nr);
	return err;
}
