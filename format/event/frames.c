/* frames.c - see frames.h; of what is read nothing is believed before it is checked */
#include "format/event/frames.h"

#include <errno.h>
#include <stdlib.h>

void mlk_frames_enc_begin(struct mlk_frames_enc *f)
{
	if (f->begun) {
		mlk_dict_reset(&f->frames);
		mlk_dict_reset(&f->stacks);
	}
	f->nr_frames = f->nr_stacks = f->skipped = 0;
	f->begun = false;
}

void mlk_frames_enc_release(struct mlk_frames_enc *f)
{
	mlk_dict_release(&f->frames);
	mlk_dict_release(&f->stacks);
}

/* Find the stack of @frame and its callers' stack *@number, and make it *@number; a new one is told
 * in @column. */
static int encode_frame(struct mlk_frames_enc *f, struct mlk_enc *column,
			const struct mlk_code_frame *frame, uint32_t *number)
{
	uint32_t *known = mlk_dict_at(&f->frames, (uint64_t)frame->code << 32 | frame->at);
	uint32_t caller = *number, of = known ? *known : 0, *stack;

	if (!known)
		return -ENOMEM;
	if (!of)
		*known = ++f->nr_frames;
	stack = mlk_dict_at(&f->stacks, (uint64_t)caller << 32 | (of ? of : f->nr_frames));
	if (!stack)
		return -ENOMEM;
	if (*stack) {
		*number = *stack;
		return 0;
	}
	*number = *stack = ++f->nr_stacks;
	mlk_enc_uvar(column, caller ? *number - caller : 0);
	mlk_enc_uvar(column, of);
	if (!of) {
		mlk_enc_uvar(column, frame->code);
		mlk_enc_uvar(column, frame->at);
	}
	return 0;
}

int mlk_frames_encode(struct mlk_frames_enc *f, struct mlk_enc *numbers, struct mlk_enc *stacks,
		      const struct mlk_event *ev)
{
	uint32_t number = 0;
	int err = 0;

	if (!ev->nr_frames && !f->begun) {
		f->skipped++;
		return 0;
	}
	f->begun = true;
	for (; f->skipped; f->skipped--)
		mlk_enc_uvar(numbers, 0);
	for (uint32_t i = ev->nr_frames; i-- && !err;)
		err = encode_frame(f, stacks, &ev->frames[i], &number);
	mlk_enc_uvar(numbers, number);
	return err;
}

void mlk_frames_dec_begin(struct mlk_frames_dec *f)
{
	f->nr_frames = f->nr_stacks = f->last_number = 0;
}

void mlk_frames_dec_release(struct mlk_frames_dec *f)
{
	free(f->frames);
	free(f->stacks);
}

/* Room in *@list for one thing of @size more than @nr.  0 or -ENOMEM. */
static int make_room(void *list, size_t nr, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 256;
	void **at = list, *made;

	if (nr < *room)
		return 0;
	made = reallocarray(*at, more, size);
	if (!made)
		return -ENOMEM;
	*at = made;
	*room = more;
	return 0;
}

/* The number, from 1, of the next stack's frame, which may be new. */
static int decode_frame(struct mlk_frames_dec *f, struct mlk_dec *column, uint32_t *number)
{
	struct mlk_code_frame *frame;

	*number = (uint32_t)mlk_dec_uvar_max(column, f->nr_frames);
	if (*number || column->bad)
		return 0;
	if (make_room(&f->frames, f->nr_frames, &f->room_frames, sizeof(*f->frames)))
		return -ENOMEM;
	frame = &f->frames[f->nr_frames];
	frame->code = (uint32_t)mlk_dec_uvar_max(column, UINT32_MAX);
	frame->at = (uint32_t)mlk_dec_uvar_max(column, UINT32_MAX);
	*number = (uint32_t)++f->nr_frames;
	return 0;
}

static int decode_stack(struct mlk_frames_dec *f, struct mlk_dec *column)
{
	struct mlk_frames_stack stack = {.depth = 1};
	uint64_t back = mlk_dec_uvar_max(column, f->nr_stacks);
	int err = decode_frame(f, column, &stack.frame);

	if (err || column->bad)
		return err;
	if (back) {
		stack.caller = (uint32_t)(f->nr_stacks + 1 - back);
		stack.depth += f->stacks[stack.caller - 1].depth;
	}
	column->bad |= stack.depth > MLK_MAX_CODE_FRAMES;
	if (make_room(&f->stacks, f->nr_stacks, &f->room_stacks, sizeof(*f->stacks)))
		return -ENOMEM;
	f->stacks[f->nr_stacks++] = stack;
	return 0;
}

int mlk_frames_decode(struct mlk_frames_dec *f, struct mlk_dec *numbers, struct mlk_dec *stacks,
		      struct mlk_event *ev)
{
	uint32_t number = (uint32_t)mlk_dec_uvar_max(numbers, UINT32_MAX - 1), nr = 0;
	int err = 0;

	while (number > f->nr_stacks && !err && !stacks->bad)
		err = decode_stack(f, stacks);
	if (err || stacks->bad || !number)
		return err;
	ev->frames = f->last;
	ev->frames_number = number;
	ev->nr_frames = f->stacks[number - 1].depth;
	for (uint32_t at = number; at && number != f->last_number; at = f->stacks[at - 1].caller)
		f->last[nr++] = f->frames[f->stacks[at - 1].frame - 1];
	f->last_number = number;
	return 0;
}
