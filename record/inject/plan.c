/* plan.c - see plan.h */
#include "record/inject/plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/inject/entry.h"
#include "record/inject/gap.h"
#include "record/target/target.h"

#define SLOT 32 /* bytes */
#define BOTH (SLOT + INJECT_MOVED_MOST)

_Static_assert(INJECT_ISLAND / BOTH >= ALLOCATOR_MAX_SITES, "an island has room for all");
_Static_assert(INJECT_CHANGE == INJECT_JUMP, "a change is a jump");
_Static_assert(INJECT_CHANGES >= INJECTED_MAX_SITES, "all can be changed at once");

/* The code of one file, as the process has it and as it is in the file. */
struct code {
	uint8_t *now, *file;
	size_t len;
	uint64_t at;
};

static uint64_t address_of(const struct alloc_object *o, const struct alloc_site *s)
{
	return o->code.start + (s->function - o->code.offset);
}

void inject_plan_range(struct inject_island *island, const struct alloc_object *o)
{
	*island = (struct inject_island){.start = UINT64_MAX};
	for (size_t k = 0; k < o->nr; k++) {
		uint64_t at = address_of(o, &o->sites[k]);

		island->start = at < island->start ? at : island->start;
		island->end = at > island->end ? at : island->end;
	}
}

int inject_plan_islands(struct inject_plan *plan, const struct allocators *a, struct maps *maps)
{
	plan->nr_islands = a->nr;
	for (size_t i = 0; i < a->nr; i++) {
		struct inject_island *island = &plan->islands[i];
		struct mlk_mapping taken = {.path = ""};

		inject_plan_range(island, &a->v[i]);
		island->at = inject_gap(maps, island->start, island->end, INJECT_ISLAND);
		if (!island->at)
			return -ENOSPC;
		taken.start = island->at;
		taken.end = island->at + INJECT_ISLAND;
		if (maps_add(maps, &taken))
			return -ENOMEM;
	}
	return 0;
}

static void code_release(struct code *c)
{
	free(c->now);
	free(c->file);
}

/* Returns 0 or -errno; code_release() in any case. */
static int code_read(struct code *c, const struct alloc_object *o, int mem)
{
	ssize_t got;

	c->at = o->code.start;
	c->len = (size_t)(o->code.end - o->code.start);
	c->now = malloc(c->len);
	c->file = calloc(1, c->len); /* behind its end the kernel shows zeros, too */
	if (!c->now || !c->file)
		return -ENOMEM;
	if (pread(mem, c->now, c->len, (off_t)c->at) != (ssize_t)c->len)
		return -EIO;
	got = pread(o->fd, c->file, c->len, (off_t)o->code.offset);
	return got < 0 ? -errno : 0;
}

static void put_u32(uint8_t *to, uint32_t value)
{
	memcpy(to, &value, sizeof(value));
}

/* A slot: the site's number into r11d, which no call leaves as it was, and a jump to the stub. */
static void write_slot(uint8_t *to, uint32_t number, uint64_t stub)
{
	static const uint8_t load[] = {0x41, 0xbb}, jump[] = {0xff, 0x25};

	memcpy(to, load, sizeof(load));
	put_u32(to + 2, number);
	memcpy(to + 6, jump, sizeof(jump));
	put_u32(to + 8, 4); /* from behind this number to the address */
	memcpy(to + 16, &stub, sizeof(stub));
}

/* Compilers let a function begin at such an address, and what fills the gap before it is nobody's:
 * which function that is is not known of a loader without its symbols. */
static uint64_t next_function(const struct alloc_site *s, uint64_t at)
{
	return s->func == IMAGE_LOADER ? (at | 15) + 1 : 0;
}

/* Plan the change of @s in @o: the first site in its island is @first.  Returns why it cannot be
 * changed, or NULL. */
static const char *plan_site(struct inject_plan *plan, size_t island, size_t first,
			     const struct code *code, const struct alloc_object *o,
			     const struct alloc_site *s, const struct image *image, uint64_t base)
{
	struct injected_site *site = &plan->sites[plan->nr];
	struct inject_change *change = &plan->changes[plan->nr];
	const uint64_t function = address_of(o, s), into = function - code->at;
	const uint64_t into_island = (plan->nr - first) * BOTH;
	const uint64_t slot = plan->islands[island].at + into_island;
	uint8_t *to = plan->code[island] + into_island;
	/* its file may lie about it */
	const uint64_t known = into < code->len ? into : 0;
	const struct inject_code c = {.at = function,
				      .bytes = code->now + known,
				      .file = code->file + known,
				      .len = code->len - known,
				      .size = s->size,
				      .next = next_function(s, function),
				      .text = code->now,
				      .text_len = code->len,
				      .text_at = code->at};
	const int stub = image_stub_for(s->func, s->name);
	struct inject_entry e;
	const char *why = stub < 0 ? "there is no code for it yet" : NULL;

	if (!why && into >= code->len)
		why = "it is not where its file is mapped";
	if (!why)
		why = inject_entry_plan(&e, &c, slot, slot + SLOT);
	if (why)
		return why;
	*site = (struct injected_site){.function = function,
				       .at = e.at,
				       .moved = slot + SLOT,
				       .func = s->func,
				       .stub = (uint32_t)stub};
	snprintf(site->name, sizeof(site->name), "%s", s->name);
	memcpy(site->before, e.before, INJECT_JUMP);
	memcpy(site->after, e.after, INJECT_JUMP);
	change->at = e.at;
	memcpy(change->before, e.before, INJECT_JUMP);
	memcpy(change->after, e.after, INJECT_JUMP);
	write_slot(to, plan->numbers[plan->nr], base + image->stubs[stub]);
	memcpy(to + SLOT, e.moved, e.nr_moved);
	plan->nr++;
	return NULL;
}

/* An operator new that throws has the form beside it that returns NULL. */
static bool find_nothrow(struct inject_plan *plan, size_t first)
{
	char wanted[sizeof(plan->sites[0].name) + sizeof(IMAGE_NOTHROW)];
	bool all = true;

	for (size_t i = first; i < plan->nr; i++) {
		struct injected_site *s = &plan->sites[i];

		if (s->stub != INJECTED_NEW && s->stub != INJECTED_NEW_ALIGNED)
			continue;
		snprintf(wanted, sizeof(wanted), "%s" IMAGE_NOTHROW, s->name);
		for (size_t k = first; k < plan->nr; k++)
			if (!strcmp(plan->sites[k].name, wanted))
				s->nothrow = plan->sites[k].moved;
		all &= s->nothrow != 0;
	}
	return all;
}

int inject_plan_object(struct inject_plan *plan, size_t island, const struct alloc_object *o,
		       int mem, const struct image *image, uint64_t base, inject_plan_tell_fn *tell,
		       void *ctx)
{
	const size_t first = plan->nr;
	struct code code = {0};
	int left = 0, err = code_read(&code, o, mem);

	memset(plan->code[island], 0xcc, INJECT_ISLAND); /* int3: nothing leads there */
	for (size_t k = 0; !err && k < o->nr; k++) {
		const char *why = plan->nr < INJECTED_MAX_SITES
					  ? plan_site(plan, island, first, &code, o, &o->sites[k],
						      image, base)
					  : "there are too many functions";

		left += why != NULL;
		if (tell)
			tell(ctx, o->sites[k].name, why);
	}
	code_release(&code);
	if (err)
		return err;
	if (!find_nothrow(plan, first)) {
		left++;
		if (tell)
			tell(ctx, "operator new",
			     "it has no form that returns NULL, and exceptions do not pass "
			     "injected "
			     "code");
	}
	return left;
}

/* Have the slot in @island of the function @func lead to @stub. */
static void lead_to(struct inject_plan *plan, size_t island, uint32_t func, enum injected_stub stub,
		    const struct image *image, uint64_t base)
{
	for (size_t i = 0; i < plan->nr; i++) {
		struct injected_site *site = &plan->sites[i];
		const uint64_t into = site->moved - SLOT - plan->islands[island].at;

		if (site->func != func || into >= INJECT_ISLAND)
			continue;
		site->stub = (uint32_t)stub;
		write_slot(plan->code[island] + into, plan->numbers[i], base + image->stubs[stub]);
	}
}

void inject_plan_samples(struct inject_plan *plan, const struct allocators *a,
			 const struct image *image, uint64_t base)
{
	for (size_t i = 0; i < a->nr; i++) {
		if (a->v[i].is_program || !target_is_libc(a->v[i].path))
			continue;
		lead_to(plan, i, FUNC_MALLOC, INJECTED_SAMPLED_MALLOC, image, base);
		lead_to(plan, i, FUNC_FREE, INJECTED_SAMPLED_FREE, image, base);
	}
}

int inject_plan_sites(struct inject_plan *plan, const struct allocators *a, int mem,
		      const struct image *image, uint64_t base, inject_plan_tell_fn *tell,
		      void *ctx)
{
	int left = 0;

	plan->nr = 0;
	for (uint32_t n = 0; n < INJECTED_MAX_SITES; n++)
		plan->numbers[n] = n;
	for (size_t i = 0; i < a->nr; i++) {
		int err = inject_plan_object(plan, i, &a->v[i], mem, image, base, tell, ctx);

		if (err < 0)
			return err;
		left += err;
	}
	return left;
}
