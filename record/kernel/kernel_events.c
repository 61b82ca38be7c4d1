/* kernel_events.c - see kernel_events.h */
#include "record/kernel/kernel_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "record/base/clock.h"
#include "record/kernel/joined_stack.h"
#include "record/kernel/kernel_origins.h"
#include "record/kernel/kernel_rules.h"
#include "record/kernel/pending.h"
#include "record/kernel/user_images.h"
#include "unwind/dwunw_event.h"

#define THREADS 4096 /* whose names are remembered as written */

/* A program that runs while the recorder looks may not have put its block into the table yet, or
 * not taken it out: it is done within this time. */
#define GRACE_NS  20000000u
#define MOMENT_NS (GRACE_NS / 4)

struct named_thread {
	uint32_t tid;
	char comm[KMEM_COMM];
};

struct kernel_events {
	struct kernel_events_opts opts;
	struct kernel_events_sums sums;
	struct kernel_rules *rules;
	struct user_images *images; /* NULL: stacks of user space are not asked for */
	struct joined_stack joined; /* that is written */
	bool are_new;
	struct pending_list pending;
	uint64_t cut_ns, last_cut_ns;
	uint64_t unreadable, too_large; /* in the traces before */
	uint64_t next_id;
	uint64_t vmemmap, page_offset; /* where the pages' descriptions and the pages are */
	struct named_thread threads[THREADS];
	struct {
		uint64_t cache;
		bool wanted;
	} caches[1024]; /* by hash, what was found out of --cache */
};

/* The word at @at in the kernel, or @otherwise. */
static uint64_t read_word(const struct kernel_events *e, uint64_t at, uint64_t otherwise)
{
	struct kmem_read read = {.at = at, .kind = KMEM_READ_BYTES};
	uint64_t word;

	if (!at || kmem_probes_read(e->opts.probes, &read))
		return otherwise;
	memcpy(&word, read.bytes, sizeof(word));
	return word;
}

int kernel_events_new(struct kernel_events **out, const struct kernel_events_opts *opts)
{
	struct kernel_events *e = calloc(1, sizeof(*e));
	int err;

	*out = e;
	if (!e)
		return -ENOMEM;
	e->opts = *opts;
	if (e->opts.older_ns < GRACE_NS)
		e->opts.older_ns = GRACE_NS;
	/* Where they are without KASLR: Documentation/arch/x86/x86_64/mm.rst. */
	e->vmemmap = read_word(e, opts->names->vmemmap_base, 0xffffea0000000000);
	e->page_offset = read_word(e, opts->names->page_offset_base, 0xffff888000000000);
	err = kernel_rules_new(&e->rules, opts->probes, opts->stacks, opts->names);
	if (!err && opts->user_stacks)
		err = user_images_new(&e->images, opts->writer);
	if (err) {
		kernel_events_free(e);
		*out = NULL;
	}
	return err;
}

/* The address of a block: a page's is that of its memory, not of what describes it. */
static uint64_t address(const struct kernel_events *e, uint64_t addr, unsigned int kind)
{
	return kind == KMEM_PAGES ? e->page_offset + (addr - e->vmemmap) / 64 * 4096 : addr;
}

/* Is the block one of the cache that was asked for? */
static bool wants_cache(struct kernel_events *e, const struct pending *p)
{
	size_t at = (p->cache >> 6) % (sizeof(e->caches) / sizeof(e->caches[0]));

	if (!e->opts.cache)
		return true;
	if (p->block != KMEM_CACHE)
		return !strcmp(e->opts.cache,
			       kernel_origins_cache(e->opts.origins, p->block, 0, p->size));
	if (e->caches[at].cache != p->cache) {
		e->caches[at].cache = p->cache;
		e->caches[at].wanted =
			!strcmp(e->opts.cache,
				kernel_origins_cache(e->opts.origins, p->block, p->cache, p->size));
	}
	return e->caches[at].wanted;
}

/* Is it to be in the trace?  The answer is the same for a block's allocation and its free. */
static bool is_wanted(struct kernel_events *e, const struct pending *p, bool counts)
{
	if (p->block == KMEM_PAGES &&
	    kernel_stacks_get(e->opts.stacks, p->stack)->what & KERNEL_STACK_SLAB) {
		e->sums.slab_pages += counts;
		e->sums.slab_bytes += counts ? p->size : 0;
		return false;
	}
	if (wants_cache(e, p))
		return true;
	e->sums.filtered += counts;
	e->sums.filtered_bytes += counts ? p->size : 0;
	return false;
}

static struct pending alloc_of(const struct kmem_block *b)
{
	return (struct pending){.time_ns = b->time_ns,
				.alloc_ns = b->time_ns,
				.addr = b->addr,
				.size = b->size,
				.tid = b->tid,
				.tgid = b->tgid,
				.stack = b->stack,
				.cache = b->kind == KMEM_PAGES ? 0 : b->cache,
				.kind = MLK_ALLOC,
				.block = b->kind};
}

/* Have the trace name the thread of @b, when it has not that name there. */
static int name_thread(struct kernel_events *e, const struct kmem_block *b)
{
	struct named_thread *t = &e->threads[b->tid % THREADS];
	struct mlk_thread thread = {.tgid = KERNEL_TGID, .tid = b->tid, .name = t->comm};

	if (t->tid == b->tid && !strncmp(t->comm, b->comm, sizeof(t->comm)))
		return 0;
	t->tid = b->tid;
	memcpy(t->comm, b->comm, sizeof(t->comm));
	t->comm[sizeof(t->comm) - 1] = '\0';
	return b->tid ? mlk_writer_threads(e->opts.writer, &thread, 1) : 0;
}

/* Find out, and have the trace say, where the block of @p comes from. */
static int find_origin(struct kernel_events *e, struct pending *p, const struct kmem_block *b)
{
	const struct kernel_stack *stack = kernel_stacks_get(e->opts.stacks, p->stack);
	struct kernel_origin_key key = {.cache = b->kind == KMEM_KMALLOC ? b->size : p->cache,
					.cgroup = b->cgroup,
					.tgid = b->tgid,
					.gfp = b->gfp,
					.kind = b->kind};

	if (stack->what & KERNEL_STACK_INTERRUPT)
		key.tgid = 0;
	while (b->kind == KMEM_PAGES && 4096ull << key.order < b->size)
		key.order++;
	return kernel_origins_number(e->opts.origins, &key, b->comm, &p->origin);
}

static struct user_image image_of(const struct pending *p)
{
	return (struct user_image){.tgid = p->tgid,
				   .image = {p->user->image[0], p->user->image[1]}};
}

/* Take the stack of user space with @p, if it can be told which code it is of. */
static int take_user(struct kernel_events *e, struct pending *p)
{
	struct kmem_user *user = kmem_probes_take_user(e->opts.probes, p->addr, p->alloc_ns);
	const struct kernel_stack *stack = kernel_stacks_get(e->opts.stacks, p->stack);
	struct user_image of;
	bool known = false;
	int err = 0;

	if (!user)
		return 0;
	p->user = user;
	of = image_of(p);
	e->sums.cut_users += (stack->what & KERNEL_STACK_CUT) != 0;
	e->sums.other_users +=
		!stack->entry && !(stack->what & (KERNEL_STACK_CUT | KERNEL_STACK_INTERRUPT));
	if (stack->entry) {
		err = user_images_see(e->images, &of, &known);
		e->sums.gone_users += !known;
	}
	if (known && !err)
		return 0;
	free(user);
	p->user = NULL;
	return err;
}

static int add_alloc(struct kernel_events *e, const struct kmem_block *b)
{
	struct pending p = alloc_of(b);
	int err = e->images ? take_user(e, &p) : 0;

	if (!err && !is_wanted(e, &p, true)) {
		free(p.user);
		return 0;
	}
	if (!err)
		err = name_thread(e, b);
	if (!err)
		err = find_origin(e, &p, b);
	if (!err)
		err = pending_add(&e->pending, &p);
	if (err)
		free(p.user);
	return err;
}

static int take_block(void *arg, const struct kmem_block *b)
{
	return add_alloc(arg, b);
}

static int take_event(void *arg, void *data, size_t size)
{
	struct kernel_events *e = arg;
	const struct kmem_event *event = data;
	struct pending p = {.time_ns = event->time_ns,
			    .alloc_ns = event->alloc_ns,
			    .addr = event->addr,
			    .size = event->size,
			    .tid = event->tid,
			    .stack = event->stack,
			    .cache = event->cache,
			    /* Pages may be freed in parts, as mappings are. */
			    .kind = event->block_kind == KMEM_PAGES ? MLK_UNMAP : MLK_FREE,
			    .block = (uint8_t)event->block_kind};

	if (event->kind == KMEM_SAMPLE) {
		if (size >= sizeof(struct kmem_sample))
			kernel_rules_learn(e->rules, data);
		e->sums.wrong = kernel_rules_wrong(e->rules);
		return 0;
	}
	if (event->kind == KMEM_ALLOC)
		return size < sizeof(struct kmem_alloc_event)
			       ? -EINVAL
			       : add_alloc(e, &((const struct kmem_alloc_event *)data)->block);
	return is_wanted(e, &p, false) ? pending_add(&e->pending, &p) : 0;
}

int kernel_events_consume(struct kernel_events *e)
{
	int err = kmem_probes_consume(e->opts.probes, take_event, e);

	e->are_new = kernel_rules_ask(e->rules);
	return err;
}

bool kernel_events_are_many(const struct kernel_events *e)
{
	return e->pending.nr_users > KMEM_USERS / 4;
}

bool kernel_events_are_new(const struct kernel_events *e)
{
	return e->are_new;
}

/* Make the stack of @p, and have the trace know the code that it is of. */
static int make_stack(struct kernel_events *e, const struct pending *p,
		      const struct kernel_stack *stack)
{
	struct user_image of;

	joined_stack_make(&e->joined, stack, p->user);
	if (!p->user)
		return 0;
	of = image_of(p);
	e->sums.users++;
	return user_images_tell(e->images, &of, p->time_ns);
}

static int write_alloc(struct kernel_events *e, const struct pending *p)
{
	static const uint8_t funcs[KMEM_KIND_NR] = {[KMEM_KMALLOC] = MLK_FUNC_KMALLOC,
						    [KMEM_CACHE] = MLK_FUNC_KMEM_CACHE_ALLOC,
						    [KMEM_PAGES] = MLK_FUNC_ALLOC_PAGES,
						    [KMEM_PERCPU] = MLK_FUNC_ALLOC_PERCPU};
	const struct kernel_stack *stack = kernel_stacks_get(e->opts.stacks, p->stack);
	int err = make_stack(e, p, stack);
	struct mlk_event event = {.kind = MLK_ALLOC,
				  .func = p->block < KMEM_KIND_NR ? funcs[p->block] : 0,
				  .nr_regs = DWUNW_MAX_ARCH_REGS,
				  .flags = DWUNW_EVENT_RETURN_ADDRESS | e->joined.flags,
				  .tgid = KERNEL_TGID,
				  .tid = stack->what & KERNEL_STACK_INTERRUPT ? 0 : p->tid,
				  .time_ns = p->time_ns,
				  .addr = address(e, p->addr, p->block),
				  .size = p->size,
				  .alloc_id = ++e->next_id,
				  .stack = e->joined.bytes,
				  .stack_len = e->joined.len};

	if (err)
		return err;
	event.regs[MLK_SP_REG] = e->joined.sp;
	event.regs[MLK_ORIGIN_REG] = p->origin;
	event.regs[MLK_SPACE_REG] = p->user ? p->tgid : 0;
	event.regs[DWUNW_X86_64_RIP] = e->joined.pc;
	e->sums.cut += (stack->what & KERNEL_STACK_CUT) != 0;
	e->sums.unknown += !stack->nr;
	e->sums.allocs++;
	return mlk_writer_event(e->opts.writer, &event);
}

static int write_one(void *arg, const struct pending *p)
{
	struct kernel_events *e = arg;
	struct mlk_event event = {.kind = p->kind,
				  .tgid = KERNEL_TGID,
				  .tid = p->tid,
				  .time_ns = p->time_ns,
				  .addr = address(e, p->addr, p->block),
				  .size = p->kind == MLK_UNMAP ? p->size : 0};

	if (p->kind == MLK_ALLOC)
		return write_alloc(e, p);
	e->sums.frees++;
	return mlk_writer_event(e->opts.writer, &event);
}

/* Write what happened before @until_ns. */
static int write_until(struct kernel_events *e, uint64_t until_ns)
{
	int err = pending_write(&e->pending, until_ns, write_one, e);

	if (e->images) {
		e->sums.unreadable = e->unreadable + user_images_unreadable(e->images);
		e->sums.too_large = e->too_large + user_images_too_large(e->images);
		user_images_look(e->images);
	}
	return err;
}

int kernel_events_look(struct kernel_events *e)
{
	const struct timespec moment = {.tv_nsec = MOMENT_NS};
	uint64_t now_ns = clock_now_ns();
	int err;

	if (e->opts.all) {
		err = kernel_events_consume(e);
		e->last_cut_ns = now_ns;
		return err ? err : write_until(e, UINT64_MAX);
	}
	e->cut_ns = now_ns > e->opts.older_ns ? now_ns - e->opts.older_ns : 0;
	kmem_probes_look(e->opts.probes, e->cut_ns);
	nanosleep(&moment, NULL);
	err = kmem_probes_each(e->opts.probes, e->last_cut_ns, e->cut_ns, take_block, e);
	if (!err)
		err = kernel_events_consume(e);
	if (err)
		return err;
	pending_drop_unseen(&e->pending, e->last_cut_ns, e->cut_ns);
	err = write_until(e, e->cut_ns);
	e->last_cut_ns = e->cut_ns;
	return err;
}

int kernel_events_look_at_all(struct kernel_events *e)
{
	const struct timespec grace = {.tv_nsec = GRACE_NS + MOMENT_NS};

	nanosleep(&grace, NULL);
	return kernel_events_look(e);
}

uint64_t kernel_events_written_ns(const struct kernel_events *e)
{
	return e->last_cut_ns;
}

/* What waits to be written are frees: they need neither origins nor names nor code. */
int kernel_events_begin_trace(struct kernel_events *e, struct mlk_writer *w)
{
	e->opts.writer = w;
	memset(e->threads, 0, sizeof(e->threads));
	if (!e->images)
		return 0;
	e->unreadable = e->sums.unreadable;
	e->too_large = e->sums.too_large;
	user_images_free(e->images);
	return user_images_new(&e->images, w);
}

int kernel_events_finish(struct kernel_events *e)
{
	int err = kernel_events_look_at_all(e);

	return err ? err : write_until(e, UINT64_MAX);
}

const struct kernel_events_sums *kernel_events_sums(const struct kernel_events *e)
{
	return &e->sums;
}

void kernel_events_free(struct kernel_events *e)
{
	if (!e)
		return;
	kernel_rules_free(e->rules);
	user_images_free(e->images);
	pending_release(&e->pending);
	free(e);
}
