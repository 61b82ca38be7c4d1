/* unwound_chunk.c - see unwound_chunk.h */
#include "report/decode/unwound_chunk.h"

#include "report/decode/stored_stacks.h"

/* Take the heads that come next; the stack of the ALLOC number i is @unwound->allocs[i]. */
static int take_heads(struct mlk_reader *trace, const struct mlk_unwound *unwound, uint64_t stop_ns,
		      struct batch *batch)
{
	struct mlk_record record;
	size_t nr = 0;
	int more, err = 0;

	while (!err && (more = mlk_reader_next(trace, &record)) != 0) {
		const struct mlk_event *event = &record.event;
		uint32_t stack = 0;

		if (more < 0)
			return more;
		if (event->kind == MLK_ALLOC) {
			if (nr == unwound->nr_allocs)
				return MLK_E_CORRUPT;
			stack = unwound->allocs[nr++];
		}
		if (event->time_ns <= stop_ns)
			err = batch_add_event(batch, event, stack);
	}
	return err;
}

int unwound_chunk_read(struct mlk_reader *trace, const struct trace_modules *images,
		       uint64_t stop_ns, struct batch *batch)
{
	struct mlk_record record;
	int more, err;

	err = mlk_reader_seek(trace, &batch->unwound, MLK_RECORD_UNWOUND | MLK_RECORD_HEAD);
	if (err)
		return err;
	more = mlk_reader_next(trace, &record);
	if (more <= 0)
		return more ? more : MLK_E_CORRUPT;
	if (record.unwound.events_crc != batch->chunk_crc)
		return MLK_E_CORRUPT;
	err = stored_stacks_report(&record.unwound, images, batch);
	if (!err)
		err = take_heads(trace, &record.unwound, stop_ns, batch);
	if (!err && mlk_reader_condition(trace)->chunks_lost)
		err = MLK_E_CORRUPT;
	return err;
}
