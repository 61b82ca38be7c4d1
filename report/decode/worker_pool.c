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
#include "report/base/memory.h"

#define NICE	    5
#define PLACES_EACH 3 /* for each thread: at work, waiting to be worked on and to be taken */

/* Chunks of a trace without stack bytes have many more events: memory for them is bounded, however
 * many processors there are. */
#define DROPPED_SIZE  (32u << 20)  /* bytes of one of 512K events, decoded */
#define DROPPED_SHARE 8		   /* of the memory that is allowed, for all of them, */
#define DROPPED_MOST  (256u << 20) /* but no more bytes: more would not make it faster */

struct place {
	struct worker_pool *pool;
	struct batch batch;
	struct pool_thread *by; /* whose worker's ids are in the batch */
	bool done;
};

/* A worker, and what its ids are in the unwinder that has all stacks. */
struct pool_thread {
	struct worker_pool *pool;
	struct worker *worker;
	pthread_t pthread;
	bool started;
	uint32_t *ids;
	size_t ids_room;
};

struct worker_pool {
	struct mlk_reader *trace;
	struct dwunw *dw;
	struct pool_thread *threads;
	struct place *places;
	unsigned int nr_threads, nr_places;
	struct mlk_condition condition, damage; /* damage: what the chunks say */
	bool at_end;				/* no more chunks can be found */
	bool anew;
	const struct mlk_entry *cached; /* borrowed; NULL: there is no cache */
	size_t nr_cached, next_cached;
	uint64_t nr_free; /* chunks whose places are free again: the caller is through with them */
	/* Chunks that were found, begun and taken in; below the lock, but that the caller's thread
	 * alone changes the first and the last. */
	uint64_t nr_found, nr_begun, nr_taken;
	/* what the chunks that were taken in left; as the numbers */
	struct stack_history *previous;
	bool stop;
	pthread_mutex_t lock;
	pthread_cond_t found, done, taken;
};

unsigned int worker_pool_default(void)
{
	cpu_set_t set;
	int nr = sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);

	return nr < WORKER_POOL_MAX ? (unsigned int)nr : WORKER_POOL_MAX;
}

static struct place *place_of(struct worker_pool *pool, uint64_t chunk)
{
	return &pool->places[chunk % pool->nr_places];
}

/* What the chunks before the one at @arg, which is a place, left of a thread's stack. */
static void look_back(void *arg, struct stack_history *to, const struct mlk_event *event)
{
	struct place *place = arg;
	struct worker_pool *pool = place->pool;

	pthread_mutex_lock(&pool->lock);
	while (!pool->stop && place != place_of(pool, pool->nr_taken))
		pthread_cond_wait(&pool->taken, &pool->lock);
	if (!pool->stop)
		stack_history_copy(to, pool->previous, event);
	pthread_mutex_unlock(&pool->lock);
}

/* All goes through the caller's thread, so it comes first where there are fewer CPUs than threads.
 */
static void give_way(void)
{
	(void)!nice(NICE); /* of this thread alone, on Linux */
}

static void *work(void *arg)
{
	struct pool_thread *thread = arg;
	struct worker_pool *pool = thread->pool;
	struct place *place;

	give_way();
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->stop && pool->nr_begun == pool->nr_found)
			pthread_cond_wait(&pool->found, &pool->lock);
		if (pool->stop)
			break;
		place = place_of(pool, pool->nr_begun++);
		pthread_mutex_unlock(&pool->lock);
		worker_read(thread->worker, &place->batch);
		pthread_mutex_lock(&pool->lock);
		place->by = thread;
		place->done = true;
		pthread_cond_signal(&pool->done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static int make_places(struct worker_pool *pool)
{
	pool->places = calloc(pool->nr_places, sizeof(*pool->places));
	if (!pool->places)
		return -ENOMEM;
	for (unsigned int i = 0; i < pool->nr_places; i++) {
		pool->places[i].pool = pool;
		if (stack_history_new(&pool->places[i].batch.previous, look_back, &pool->places[i]))
			return -ENOMEM;
	}
	return stack_history_new(&pool->previous, NULL, NULL);
}

/* How many places @pool is to have with @nr_threads threads, but for what memory allows. */
static unsigned int places_for(const struct worker_pool *pool, unsigned int nr_threads)
{
	unsigned int nr = nr_threads == 1 ? 1 : PLACES_EACH * nr_threads;
	uint64_t most = memory_allowed() / DROPPED_SHARE;

	if (!memory_allowed() || most > DROPPED_MOST)
		most = DROPPED_MOST;
	if (mlk_reader_meta(pool->trace)->dropped != MLK_DROPPED_ALL || nr <= most / DROPPED_SIZE)
		return nr;
	return most < DROPPED_SIZE ? 1 : (unsigned int)(most / DROPPED_SIZE);
}

/* All workers are made before the first begins: what they share is not to be changed then. */
static int start_threads(struct worker_pool *pool, const struct worker_pool_opts *opts,
			 unsigned int nr)
{
	int err = 0;

	pool->threads = calloc(nr, sizeof(*pool->threads));
	if (!pool->threads)
		return -ENOMEM;
	while (!err && pool->nr_threads < nr) {
		struct pool_thread *thread = &pool->threads[pool->nr_threads++];

		thread->pool = pool;
		err = worker_new(&thread->worker, &opts->worker);
	}
	for (unsigned int i = 0; !err && pool->nr_threads > 1 && i < pool->nr_threads; i++) {
		err = -pthread_create(&pool->threads[i].pthread, NULL, work, &pool->threads[i]);
		pool->threads[i].started = !err;
	}
	return err;
}

int worker_pool_new(struct worker_pool **out, const struct worker_pool_opts *opts)
{
	struct worker_pool *pool = calloc(1, sizeof(*pool));
	unsigned int nr_threads;
	int err;

	*out = NULL;
	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->found, NULL);
	pthread_cond_init(&pool->done, NULL);
	pthread_cond_init(&pool->taken, NULL);
	pool->trace = opts->trace;
	pool->dw = opts->dw;
	pool->anew = opts->anew;
	pool->cached = opts->worker.cache ? opts->cached : NULL;
	pool->nr_cached = opts->nr_cached;
	pool->nr_places = places_for(pool, opts->nr_threads);
	/* a thread without a place would have nothing to do */
	nr_threads = opts->nr_threads < pool->nr_places ? opts->nr_threads : pool->nr_places;
	mlk_reader_rewind(pool->trace, MLK_RECORD_CHUNK);
	err = make_places(pool);
	if (!err)
		err = start_threads(pool, opts, nr_threads);
	if (err)
		worker_pool_free(pool);
	else
		*out = pool;
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

/* Have the stacks of @batch read from the cache.  Returns 1 or MLK_E_CACHE. */
static int use_cached(struct worker_pool *pool, struct batch *batch)
{
	if (pool->next_cached == pool->nr_cached)
		return MLK_E_CACHE;
	batch->unwound = pool->cached[pool->next_cached++];
	batch->in_cache = true;
	return 1;
}

/* Find the next chunk with events, and the one before it that may have its stacks.  Returns 1, 0 at
 * the end of the trace, or an error. */
static int find_chunk(struct worker_pool *pool, struct batch *batch)
{
	struct mlk_entry none = {0}, unwound = none;
	struct mlk_record record;
	int more;

	while ((more = mlk_reader_next(pool->trace, &record)) > 0) {
		const struct mlk_chunk *chunk = &record.chunk;

		if (chunk->records & MLK_RECORD_UNWOUND && !pool->anew)
			unwound = entry_of(chunk);
		if (!(chunk->records & (MLK_RECORD_EVENT | MLK_RECORD_STACK)))
			continue;
		batch->chunk = entry_of(chunk);
		batch->chunk_crc = chunk->payload_crc;
		batch->in_cache = false;
		if (pool->cached && chunk->records & MLK_RECORD_EVENT)
			return use_cached(pool, batch);
		batch->unwound = chunk->records & MLK_RECORD_EVENT ? unwound : none;
		if (chunk->records & MLK_RECORD_EVENT &&
		    mlk_reader_meta(pool->trace)->dropped == MLK_DROPPED_ALL)
			batch->unwound = batch->chunk; /* its stacks are in it */
		return 1;
	}
	return more;
}

/* Have all places filled with chunks to be worked on, as long as there are any. */
static int find_chunks(struct worker_pool *pool)
{
	while (!pool->at_end && pool->nr_found - pool->nr_free < pool->nr_places) {
		struct place *place = place_of(pool, pool->nr_found);
		int more = find_chunk(pool, &place->batch);

		if (more < 0)
			return more;
		pool->at_end = !more;
		if (!more)
			break;
		batch_clear(&place->batch);
		place->done = false;
		pthread_mutex_lock(&pool->lock);
		pool->nr_found++;
		pthread_cond_signal(&pool->found);
		pthread_mutex_unlock(&pool->lock);
	}
	return 0;
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
static void finish_chunk(struct worker_pool *pool, struct batch *batch)
{
	pthread_mutex_lock(&pool->lock);
	/* whose stacks were not examined leaves nothing, and what was before it is no more */
	if (batch->own_ids)
		stack_history_clear(pool->previous);
	else
		stack_history_absorb(pool->previous, batch->previous);
	pool->nr_taken++;
	pthread_cond_broadcast(&pool->taken);
	pthread_mutex_unlock(&pool->lock);
}

static void wait_for(struct worker_pool *pool, struct place *place)
{
	if (pool->nr_threads == 1) {
		worker_read(pool->threads[0].worker, &place->batch);
		place->by = &pool->threads[0];
		return;
	}
	pthread_mutex_lock(&pool->lock);
	while (!place->done)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

static void finish_condition(struct worker_pool *pool)
{
	pool->condition = *mlk_reader_condition(pool->trace);
	pool->condition.chunks -= pool->damage.chunks_lost;
	note_damage(&pool->condition, &pool->damage);
}

int worker_pool_next(struct worker_pool *pool, struct batch **batch, const uint32_t **ids)
{
	struct place *place;
	struct batch *done;
	int err;

	pool->nr_free = pool->nr_taken;
	err = find_chunks(pool);
	if (err)
		return err;
	if (pool->nr_taken == pool->nr_found) {
		finish_condition(pool);
		return 0;
	}
	place = place_of(pool, pool->nr_taken);
	wait_for(pool, place);
	done = &place->batch;
	if (done->err)
		return done->err;
	note_damage(&pool->damage, &done->condition);
	err = done->own_ids ? batch_intern(done, pool->dw, &done->ids, &done->ids_room)
			    : batch_intern(done, pool->dw, &place->by->ids, &place->by->ids_room);
	finish_chunk(pool, done);
	*batch = done;
	*ids = done->own_ids ? done->ids : place->by->ids;
	return err ? err : 1;
}

const struct mlk_condition *worker_pool_condition(const struct worker_pool *pool)
{
	return &pool->condition;
}

void worker_pool_free(struct worker_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->found);
	pthread_cond_broadcast(&pool->taken);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned int i = 0; i < pool->nr_threads; i++)
		if (pool->threads[i].started)
			pthread_join(pool->threads[i].pthread, NULL);
	for (unsigned int i = 0; i < pool->nr_threads; i++) {
		worker_free(pool->threads[i].worker);
		free(pool->threads[i].ids);
	}
	for (unsigned int i = 0; pool->places && i < pool->nr_places; i++)
		batch_release(&pool->places[i].batch);
	stack_history_free(pool->previous);
	pthread_mutex_destroy(&pool->lock);
	pthread_cond_destroy(&pool->found);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->taken);
	free(pool->threads);
	free(pool->places);
	free(pool);
}
