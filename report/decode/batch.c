/* batch.c - see batch.h */
#include "report/decode/batch.h"

#include <errno.h>
#include <stdlib.h>

#include "report/base/array.h"

void batch_clear(struct batch *batch)
{
	batch->nr_events = batch->nr_stacks = 0;
	batch->own_ids = false;
	batch->kept.ready = false;
	batch->err = 0;
}

int batch_add_event(struct batch *batch, const struct mlk_event *event, uint32_t stack)
{
	const struct batch_event own = {
		.time_ns = event->time_ns,
		.addr = event->addr,
		.size = event->size,
		.alloc_id = event->alloc_id,
		.tgid = event->tgid,
		.tid = event->tid,
		.stack = stack,
		.flags = event->flags,
		.origin = batch->of_kernel && event->kind == MLK_ALLOC
				  ? (uint32_t)event->regs[MLK_ORIGIN_REG]
				  : 0,
		.kind = (uint8_t)event->kind,
		.func = (uint8_t)event->func,
	};

	return array_append(&batch->events, &batch->nr_events, &batch->events_room, &own,
			    sizeof(own));
}

int batch_add_stack(struct batch *batch, const struct batch_stack *stack)
{
	return array_append(&batch->stacks, &batch->nr_stacks, &batch->stacks_room, stack,
			    sizeof(*stack));
}

int batch_intern(const struct batch *batch, struct dwunw *dw, uint32_t **ids, size_t *room)
{
	int err = 0;

	for (size_t i = 0; i < batch->nr_stacks && !err; i++) {
		const struct batch_stack *stack = &batch->stacks[i];
		uint32_t *all = array_grow(*ids, room, (size_t)stack->id + 1, sizeof(*all));

		if (!all)
			return -ENOMEM;
		*ids = all;
		err = stack->caller
			      ? dwunw_stack_add(dw, all[stack->caller], &stack->frame,
						&all[stack->id])
			      : dwunw_stack_intern(dw, NULL, 0, stack->status, &all[stack->id]);
	}
	return err;
}

void batch_get_event(const struct batch_event *event, struct mlk_event *out)
{
	out->time_ns = event->time_ns;
	out->addr = event->addr;
	out->size = event->size;
	out->alloc_id = event->alloc_id;
	out->tgid = event->tgid;
	out->tid = event->tid;
	out->flags = event->flags;
	out->kind = event->kind;
	out->func = event->func;
	out->regs[MLK_ORIGIN_REG] = event->origin;
}

void batch_release(struct batch *batch)
{
	free(batch->events);
	free(batch->stacks);
	free(batch->ids);
	mlk_cached_release(&batch->kept);
	stack_history_free(batch->previous);
	*batch = (struct batch){0};
}
