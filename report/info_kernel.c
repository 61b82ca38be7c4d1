/* info_kernel.c - see info_kernel.h */
#include "report/info_kernel.h"

#include <errno.h>

#include "report/base/strings.h"

/* The innermost frame is in the registers, of which all but the origin's are the same otherwise. */
static uint64_t hash_stack(const struct mlk_event *event)
{
	uint64_t hash = hash_bytes(0, event->stack, event->stack_len);

	for (uint16_t i = 0; i < event->nr_regs && i < MLK_MAX_REGS; i++)
		if (i != MLK_ORIGIN_REG)
			hash = hash_word(hash, event->regs[i]);
	return hash;
}

static int note_alloc(struct info_kernel *k, const struct mlk_event *event)
{
	uint64_t hash = hash_stack(event);
	struct info_number stack = {(uint32_t)hash, (uint32_t)(hash >> 32)};
	struct info_number origin = {(uint32_t)event->regs[MLK_ORIGIN_REG], 0};
	uint32_t number;
	int added = intern_pair(&k->stacks.table, &stack, sizeof(stack), &number);

	if (added >= 0)
		added = intern_pair(&k->used.table, &origin, sizeof(origin), &number);
	return added < 0 ? added : 0;
}

int info_kernel_note(struct info_kernel *k, const struct mlk_record *record)
{
	if (record->type == MLK_RECORD_ORIGIN)
		return origins_note(&k->origins, &record->origin);
	if (record->type != MLK_RECORD_EVENT || record->event.kind != MLK_ALLOC)
		return 0;
	return note_alloc(k, &record->event);
}

static int note_origin(const struct origin *origin, struct strings *caches, struct strings *cgroups,
		       struct intern *processes)
{
	struct info_number process = {origin->tgid, 0};
	uint32_t number;
	int err = strings_intern(caches, origin->cache, &number);

	if (!err)
		err = strings_intern(cgroups, origin->cgroup, &number);
	if (!err && origin->tgid)
		err = intern_pair(processes, &process, sizeof(process), &number);
	return err < 0 ? err : 0;
}

int info_kernel_sum(const struct info_kernel *k, struct info_sums *sums)
{
	struct strings *caches = NULL, *cgroups = NULL;
	struct intern processes = {0};
	int err = strings_new(&caches);

	if (!err)
		err = strings_new(&cgroups);
	for (size_t i = 0; !err && i < k->used.nr; i++) {
		const struct origin *origin = origins_get(&k->origins, k->used.all[i].low);

		if (origin)
			err = note_origin(origin, caches, cgroups, &processes);
	}
	/* Each table has "", too: that is not known. */
	if (!err)
		*sums = (struct info_sums){.stacks = k->stacks.nr,
					   .caches = caches->nr - 1,
					   .processes = processes.nr,
					   .cgroups = cgroups->nr - 1};
	strings_free(caches);
	strings_free(cgroups);
	intern_release(&processes);
	return err;
}

void info_kernel_release(struct info_kernel *k)
{
	origins_release(&k->origins);
	intern_release(&k->used.table);
	intern_release(&k->stacks.table);
}
