/* root_names.c - see root_names.h */
#include "report/reach/root_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/hash_index.h"
#include "report/reach/thread_locals.h"
#include "unwind/symbol/demangle.h"

#define SP	 7   /* DWARF number, psABI figure 3.36 */
#define RED_ZONE 128 /* bytes below the stack pointer that are in use, psABI 3.2.2 */

/* A root, by what it is and which of its kind, and the number among the names. */
struct root_key {
	uint32_t what; /* enum root_kind, and STALE */
	uint32_t which;
};

#define STALE 0x100u

/* A stack pointer, and of which thread of the pass. */
struct stack_top {
	uint64_t sp;
	uint32_t thread;
};

struct root_names {
	const struct mlk_pass *pass;
	struct variables variables;
	struct thread_locals locals;
	struct stack_top *tops; /* ascending */
	size_t nr_tops;
	INTERN_OF(struct root_key);
	struct root_name *names;
	size_t names_room;
	/* Words come in the order of their addresses: many of one root follow each other. */
	struct {
		uint64_t start, end;
		struct root_key key;
		bool numbered[2];
		uint32_t number[2]; /* of what is read, and of what is stale */
	} last;
	int err;
};

static int compare_tops(const void *a, const void *b)
{
	const struct stack_top *x = a, *y = b;

	return (x->sp > y->sp) - (x->sp < y->sp);
}

int root_names_new(struct root_names **out, const struct root_modules *modules,
		   const struct mlk_pass *pass)
{
	struct root_names *n = calloc(1, sizeof(*n));
	int err = n ? variables_find(&n->variables, modules, pass) : -ENOMEM;

	*out = NULL;
	if (!err)
		err = thread_locals_find(&n->locals, modules, pass);
	if (!err) {
		n->pass = pass;
		n->tops = calloc(pass->nr_threads + 1, sizeof(*n->tops));
		err = n->tops ? 0 : -ENOMEM;
	}
	for (size_t i = 0; i < pass->nr_threads && !err; i++)
		if (pass->threads[i].known >> SP & 1)
			n->tops[n->nr_tops++] =
				(struct stack_top){pass->threads[i].regs[SP], (uint32_t)i};
	if (err) {
		root_names_free(n);
		return err;
	}
	qsort(n->tops, n->nr_tops, sizeof(*n->tops), compare_tops);
	*out = n;
	return 0;
}

int root_names_note(struct root_names *names, const struct mlk_pointer *words, size_t nr)
{
	return thread_locals_note(&names->locals, words, nr);
}

/* The number of the range that holds @address, or that of none. */
static size_t range_of(const struct mlk_pass *pass, uint64_t address)
{
	size_t low = 0, high = pass->nr_ranges;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pass->ranges[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < pass->ranges[low - 1].end ? low - 1 : pass->nr_ranges;
}

/* The thread whose stack @address in @range is: that of the last frame before it, or the one that
 * has not come so far down.  UINT32_MAX: none. */
static uint32_t thread_at(const struct root_names *n, const struct mlk_range *range,
			  uint64_t address)
{
	size_t low = 0, high = n->nr_tops;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (n->tops[middle].sp <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (low && n->tops[low - 1].sp >= range->start)
		return n->tops[low - 1].thread;
	return low < n->nr_tops && n->tops[low].sp < range->end ? n->tops[low].thread : UINT32_MAX;
}

/* What the word at @address is in, from n->last.start to n->last.end. */
static void find_place(struct root_names *n, uint64_t address)
{
	const struct variables *v = &n->variables;
	size_t at = variables_before(v, address), r = range_of(n->pass, address);
	const struct mlk_range *range = r < n->pass->nr_ranges ? &n->pass->ranges[r] : NULL;
	uint32_t thread;
	size_t local;

	memset(&n->last, 0, sizeof(n->last));
	n->last.start = address;
	n->last.end = address + 1;
	if (at && address < v->all[at - 1].end) {
		n->last.end = v->all[at - 1].end;
		n->last.key = (struct root_key){ROOT_VARIABLE, (uint32_t)(at - 1)};
		return;
	}
	local = thread_locals_at(&n->locals, address, &n->last.end);
	if (local) {
		n->last.key = (struct root_key){ROOT_THREAD_LOCAL, (uint32_t)(local - 1)};
		return;
	}
	if (!range)
		return;
	thread = range->path[0] && strcmp(range->path, "[stack]") != 0
			 ? UINT32_MAX
			 : thread_at(n, range, address);
	if (thread != UINT32_MAX) {
		n->last.key = (struct root_key){ROOT_STACK, thread};
		return;
	}
	n->last.end = at < v->nr && v->all[at].start < range->end ? v->all[at].start : range->end;
	n->last.key = (struct root_key){
		range->path[0] == '/' || variables_area(v, address) ? ROOT_DATA : ROOT_MEMORY,
		(uint32_t)r};
}

/* The part of its stack that a thread uses, or the other one. */
static void set_stack(const struct root_names *n, uint32_t thread, struct root_name *name)
{
	uint64_t sp = n->pass->threads[thread].regs[SP];
	size_t r = range_of(n->pass, sp);

	if (r == n->pass->nr_ranges)
		return;
	name->start = name->stale ? n->pass->ranges[r].start : sp - RED_ZONE;
	name->end = name->stale ? sp - RED_ZONE : n->pass->ranges[r].end;
}

/* Describe the root @key. */
static int describe(const struct root_names *n, const struct root_key *key, struct root_name *name)
{
	const struct mlk_pass *pass = n->pass;
	enum root_kind kind = (enum root_kind)(key->what & ~STALE);
	const struct variable *v = kind == ROOT_VARIABLE       ? &n->variables.all[key->which]
				   : kind == ROOT_THREAD_LOCAL ? &n->locals.all[key->which]
							       : NULL;
	const char *path = v ? v->path : "", *text = "";

	*name = (struct root_name){.kind = kind, .stale = key->what & STALE};
	if (kind == ROOT_VARIABLE) {
		name->start = v->start;
		name->end = v->end;
	} else if (kind == ROOT_THREAD_LOCAL) {
		name->start = name->end = 0;
	} else if (kind == ROOT_DATA || kind == ROOT_MEMORY) {
		const struct mlk_range *r = &pass->ranges[key->which];
		const struct data_area *area = variables_area(&n->variables, r->start);

		name->start = r->start;
		name->end = r->end;
		path = kind == ROOT_DATA ? r->path[0] != '/' && area ? area->path : r->path : "";
		text = kind == ROOT_MEMORY ? r->path : "";
	} else if (kind == ROOT_STACK || kind == ROOT_REGISTERS) {
		name->number = pass->threads[key->which].tid;
		if (kind == ROOT_STACK)
			set_stack(n, key->which, name);
	} else {
		name->number = key->which;
	}
	name->name = v ? dwunw_demangle(v->name, v->name_len) : strdup(text);
	name->file = strdup(v && v->file ? v->file : "");
	name->path = strdup(path);
	return name->name && name->file && name->path ? 0 : -ENOMEM;
}

static void release_name(struct root_name *name)
{
	free(name->name);
	free(name->file);
	free(name->path);
}

/* The number of the root @key; 0 where memory is short. */
static uint32_t number_of(struct root_names *n, struct root_key key)
{
	struct root_name *names;
	uint32_t number;
	int err = intern_pair(&n->table, &key, sizeof(key), &number);

	if (err == 1) {
		names = realloc(n->names, n->room * sizeof(*names));
		if (names) {
			n->names = names;
			err = describe(n, &key, &names[number]);
			if (err)
				release_name(&names[number]);
		} else {
			err = -ENOMEM;
		}
		if (err)
			n->nr--;
	}
	if (err < 0 || number >= REACH_INTERIOR - 2) {
		n->err = -ENOMEM;
		return 0;
	}
	return number;
}

static uint32_t number_of_word(struct root_names *n, uint64_t address, bool stale)
{
	struct root_key key;

	if (address < n->last.start || address >= n->last.end)
		find_place(n, address);
	if (n->last.numbered[stale])
		return n->last.number[stale];
	key = n->last.key;
	key.what |= stale ? STALE : 0;
	n->last.number[stale] = number_of(n, key);
	n->last.numbered[stale] = true;
	return n->last.number[stale];
}

static enum root_kind kind_of_given(uint8_t kind)
{
	switch (kind) {
	case MLK_ROOT_EPOLL:
		return ROOT_EPOLL;
	case MLK_ROOT_TIMER:
		return ROOT_TIMER;
	case MLK_ROOT_ALTSTACK:
		return ROOT_SIGNAL_STACK;
	default:
		return ROOT_OTHER; /* of a later version */
	}
}

uint32_t root_names_number(void *names, enum reach_root kind, uint64_t where, bool stale)
{
	struct root_names *n = names;
	const struct mlk_root *given;

	if (n->err)
		return 0;
	switch (kind) {
	case REACH_ROOT_THREAD:
		return number_of(n, (struct root_key){ROOT_REGISTERS, (uint32_t)where});
	case REACH_ROOT_GIVEN:
		given = &n->pass->roots[where];
		return number_of(n, (struct root_key){kind_of_given(given->kind), given->number});
	default:
		return number_of_word(n, where, stale);
	}
}

bool root_names_is_stack(const void *names, uint32_t number)
{
	const struct root_names *n = names;

	return n->names[number].kind == ROOT_STACK || n->names[number].kind == ROOT_REGISTERS;
}

int root_names_error(const struct root_names *names)
{
	return names->err;
}

uint32_t root_names_nr(const struct root_names *names)
{
	return (uint32_t)names->nr;
}

const struct root_name *root_names_get(const struct root_names *names, uint32_t number)
{
	return &names->names[number];
}

void root_names_free(struct root_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; names->names && i < names->nr; i++)
		release_name(&names->names[i]);
	free(names->names);
	free(names->tops);
	variables_release(&names->variables);
	thread_locals_release(&names->locals);
	intern_release(&names->table);
	free(names);
}
