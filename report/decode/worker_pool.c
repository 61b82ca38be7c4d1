/* worker_pool.c - see worker_pool.h
 *
 * The chunks are numbered in the order of the file, and chunk n has place n modulo the number of
 * places.  The caller's thread finds the chunks, and takes in what became of them in their order;
 * the workers take them in that order, too.  So a worker that waits for what the chunks before
 * leave (of threads' stacks, see stack_history.h) waits for workers that do not wait for it.
 */
#include "report/decode/worker_pool.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/base/array.h"
#include "report/decode/worker.h"

#define NICE	    5
#define PLACES_EACH 3 /* for each thread: at work, waiting to be worked on and to be taken */

struct place {
	struct worker_pool *crew;
	struct batch batch;
	struct hand *by; /* whose worker's ids are in the batch */
	bool done;
};

/* A worker, and what its ids are in the unwinder that has all stacks. */
struct hand {
	struct worker_pool *crew;
	struct worker *worker;
	pthread_t thread;
	bool started;
	uint32_t *ids;
	size_t ids_room;
};

struct worker_pool {
	struct mlk_reader *trace;
	struct dwunw *dw;
	struct hand *hands;
	struct place *places;
	unsigned int nr_hands, nr_places;
	struct mlk_condition condition, damage; /* damage: what the chunks say */
	bool at_end;				/* no more chunks can be found */
	bool anew;
	uint64_t nr_free; /* chunks whose places are free again: the caller is through with them */
	/* Chunks that were found, begun and taken in; below the lock, but that the caller's thread
	 * alone changes the first and the last. */
	uint64_t nr_found, nr_begun, nr_taken;
	struct stack_history
		*previous; /* what the chunks that were taken in left; as the numbers */
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t found, done, taken;
};

unsigned int worker_pool_default(void)
{
	cpu_set_t set;
	int nr = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return nr < CREW_MAX ? (unsigned int)nr : CREW_MAX;
}

static struct place *place_of(struct worker_pool *crew, uint64_t chunk)
{
	return &crew->places[chunk % crew->nr_places];
}

/* What the chunks before the one at @arg, which is a place, left of a thread's stack. */
static void look_back(void *arg, struct stack_history *to, const struct mlk_event *event)
{
	struct place *place = arg;
	struct worker_pool *crew = place->crew;

	pthread_mutex_lock(&crew->lock);
	while (!crew->stop && place != place_of(crew, crew->nr_taken))
		pthread_cond_wait(&crew->taken, &crew->lock);
	if (!crew->stop)
		stack_history_copy(to, crew->previous, event);
	pthread_mutex_unlock(&crew->lock);
}

/* All goes through the caller's thread, so it comes first where there are fewer CPUs than threads.
 */
static void give_way(void)
{
	(void)!nice(NICE); /* of this thread alone, on Linux */
}

static void *work(void *arg)
{
	struct hand *hand = arg;
	struct worker_pool *crew = hand->crew;
	struct place *place;

	give_way();
	pthread_mutex_lock(&crew->lock);
	for (;;) {
		while (!crew->stop && crew->nr_begun == crew->nr_found)
			pthread_cond_wait(&crew->found, &crew->lock);
		if (crew->stop)
			break;
		place = place_of(crew, crew->nr_begun++);
		pthread_mutex_unlock(&crew->lock);
		worker_read(hand->worker, &place->batch);
		pthread_mutex_lock(&crew->lock);
		place->by = hand;
		place->done = true;
		pthread_cond_signal(&crew->done);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

static int make_places(struct worker_pool *crew)
{
	crew->places = calloc(crew->nr_places, sizeof(*crew->places));
	if (!crew->places)
		return -ENOMEM;
	for (unsigned int i = 0; i < crew->nr_places; i++) {
		crew->places[i].crew = crew;
		if (stack_history_new(&crew->places[i].batch.previous, look_back, &crew->places[i]))
			return -ENOMEM;
	}
	return stack_history_new(&crew->previous, NULL, NULL);
}

/* All workers are made before the first begins: what they share is not to be changed then. */
static int make_hands(struct worker_pool *crew, const struct worker_pool_opts *opts)
{
	const struct worker_opts worker = {
		.trace = opts->trace,
		.dw = opts->dw,
		.spaces = opts->spaces,
		.images = opts->images,
		.stop_ns = opts->stop_ns,
	};
	int err = 0;

	crew->hands = calloc(opts->nr_threads, sizeof(*crew->hands));
	if (!crew->hands)
		return -ENOMEM;
	while (!err && crew->nr_hands < opts->nr_threads) {
		struct hand *hand = &crew->hands[crew->nr_hands++];

		hand->crew = crew;
		err = worker_new(&hand->worker, &worker);
	}
	for (unsigned int i = 0; !err && crew->nr_hands > 1 && i < crew->nr_hands; i++) {
		err = -pthread_create(&crew->hands[i].thread, NULL, work, &crew->hands[i]);
		crew->hands[i].started = !err;
	}
	return err;
}

int worker_pool_new(struct worker_pool **out, const struct worker_pool_opts *opts)
{
	struct worker_pool *crew = calloc(1, sizeof(*crew));
	int err;

	*out = NULL;
	if (!crew)
		return -ENOMEM;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->found, NULL);
	pthread_cond_init(&crew->done, NULL);
	pthread_cond_init(&crew->taken, NULL);
	crew->trace = opts->trace;
	crew->dw = opts->dw;
	crew->anew = opts->anew;
	crew->nr_places = opts->nr_threads == 1 ? 1 : PLACES_EACH * opts->nr_threads;
	mlk_reader_rewind(crew->trace, MLK_RECORD_CHUNK);
	err = make_places(crew);
	if (!err)
		err = make_hands(crew, opts);
	if (err)
		worker_pool_free(crew);
	else
		*out = crew;
	return err;
}

static struct mlk_entry entry_of(const struct mlk_chunk *chunk)
{
	return (struct mlk_entry){
		.offset = chunk->offset,
		.records = chunk->records,
		.type = chunk->type,
		.seq = chunk->seq,
		.first_ns = chunk->first_ns,
		.last_ns = chunk->last_ns,
		.nr_records = chunk->nr_records,
	};
}

/* Find the next chunk with events, and the one before it that may have its stacks.  Returns 1, 0 at
 * the end of the trace, or an error. */
static int find_chunk(struct worker_pool *crew, struct batch *batch)
{
	struct mlk_entry none = {0}, unwound = none;
	struct mlk_record record;
	int more;

	while ((more = mlk_reader_next(crew->trace, &record)) > 0) {
		const struct mlk_chunk *chunk = &record.chunk;

		if (chunk->records & MLK_RECORD_UNWOUND && !crew->anew)
			unwound = entry_of(chunk);
		if (!(chunk->records & (MLK_RECORD_EVENT | MLK_RECORD_STACK)))
			continue;
		batch->chunk = entry_of(chunk);
		batch->chunk_crc = chunk->payload_crc;
		batch->unwound = chunk->records & MLK_RECORD_EVENT ? unwound : none;
		return 1;
	}
	return more;
}

/* Have all places filled with chunks to be worked on, as long as there are any. */
static int find_chunks(struct worker_pool *crew)
{
	while (!crew->at_end && crew->nr_found - crew->nr_free < crew->nr_places) {
		struct place *place = place_of(crew, crew->nr_found);
		int more = find_chunk(crew, &place->batch);

		if (more < 0)
			return more;
		crew->at_end = !more;
		if (!more)
			break;
		batch_clear(&place->batch);
		place->done = false;
		pthread_mutex_lock(&crew->lock);
		crew->nr_found++;
		pthread_cond_signal(&crew->found);
		pthread_mutex_unlock(&crew->lock);
	}
	return 0;
}

/* Give the unwinder of all the stacks of which @batch tells, and note in *@ids, which has room for
 * *@room, what they are there. */
static int take_stacks(struct worker_pool *crew, const struct batch *batch, uint32_t **ids,
		       size_t *room)
{
	int err = 0;

	for (size_t i = 0; i < batch->nr_stacks && !err; i++) {
		const struct batch_stack *stack = &batch->stacks[i];
		uint32_t *all = array_grow(*ids, room, (size_t)stack->id + 1, sizeof(*all));

		if (!all)
			return -ENOMEM;
		*ids = all;
		err = stack->caller ? dwunw_stack_add(crew->dw, all[stack->caller], &stack->frame,
						      &all[stack->id])
				    : dwunw_stack_intern(crew->dw, NULL, 0, stack->status,
							 &all[stack->id]);
	}
	return err;
}

/* As the reader itself would report a damaged chunk. */
static void note_damage(struct mlk_condition *all, const struct mlk_condition *chunk)
{
	all->chunks_lost += chunk->chunks_lost;
	all->unwound_unused += chunk->unwound_unused;
	if (!chunk->lost_to_ns)
		return;
	if (!all->lost_to_ns || chunk->lost_from_ns < all->lost_from_ns)
		all->lost_from_ns = chunk->lost_from_ns;
	if (chunk->lost_to_ns > all->lost_to_ns)
		all->lost_to_ns = chunk->lost_to_ns;
}

/* What @batch left of threads' stacks is there for those behind it. */
static void finish_chunk(struct worker_pool *crew, struct batch *batch)
{
	pthread_mutex_lock(&crew->lock);
	/* whose stacks were not examined leaves nothing, and what was before it is no more */
	if (batch->own_ids)
		stack_history_clear(crew->previous);
	else
		stack_history_absorb(crew->previous, batch->previous);
	crew->nr_taken++;
	pthread_cond_broadcast(&crew->taken);
	pthread_mutex_unlock(&crew->lock);
}

static void wait_for(struct worker_pool *crew, struct place *place)
{
	if (crew->nr_hands == 1) {
		worker_read(crew->hands[0].worker, &place->batch);
		place->by = &crew->hands[0];
		return;
	}
	pthread_mutex_lock(&crew->lock);
	while (!place->done)
		pthread_cond_wait(&crew->done, &crew->lock);
	pthread_mutex_unlock(&crew->lock);
}

static void finish_condition(struct worker_pool *crew)
{
	crew->condition = *mlk_reader_condition(crew->trace);
	crew->condition.chunks -= crew->damage.chunks_lost;
	note_damage(&crew->condition, &crew->damage);
}

int worker_pool_next(struct worker_pool *crew, const struct batch **batch, const uint32_t **ids)
{
	struct place *place;
	struct batch *done;
	int err;

	crew->nr_free = crew->nr_taken;
	err = find_chunks(crew);
	if (err)
		return err;
	if (crew->nr_taken == crew->nr_found) {
		finish_condition(crew);
		return 0;
	}
	place = place_of(crew, crew->nr_taken);
	wait_for(crew, place);
	done = &place->batch;
	if (done->err)
		return done->err;
	note_damage(&crew->damage, &done->condition);
	err = done->own_ids ? take_stacks(crew, done, &done->ids, &done->ids_room)
			    : take_stacks(crew, done, &place->by->ids, &place->by->ids_room);
	finish_chunk(crew, done);
	*batch = done;
	*ids = done->own_ids ? done->ids : place->by->ids;
	return err ? err : 1;
}

const struct mlk_condition *worker_pool_condition(const struct worker_pool *crew)
{
	return &crew->condition;
}

void worker_pool_free(struct worker_pool *crew)
{
	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->stop = true;
	pthread_cond_broadcast(&crew->found);
	pthread_cond_broadcast(&crew->taken);
	pthread_mutex_unlock(&crew->lock);
	for (unsigned int i = 0; i < crew->nr_hands; i++)
		if (crew->hands[i].started)
			pthread_join(crew->hands[i].thread, NULL);
	for (unsigned int i = 0; i < crew->nr_hands; i++) {
		worker_free(crew->hands[i].worker);
		free(crew->hands[i].ids);
	}
	for (unsigned int i = 0; crew->places && i < crew->nr_places; i++)
		batch_release(&crew->places[i].batch);
	stack_history_free(crew->previous);
	pthread_mutex_destroy(&crew->lock);
	pthread_cond_destroy(&crew->found);
	pthread_cond_destroy(&crew->done);
	pthread_cond_destroy(&crew->taken);
	free(crew->hands);
	free(crew->places);
	free(crew);
}
