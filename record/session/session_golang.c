/* session_golang.c - see session_golang.h */
#include "record/session/session_golang.h"

#include <errno.h>
#include <string.h>

/* The mapping of the program that @t runs, among @maps; NULL: it is not known. */
static const struct mlk_mapping *program_in(const struct target *t, const struct maps *maps)
{
	for (size_t i = 0; i < maps->nr; i++)
		if (maps->v[i].inode && maps->v[i].perms & MLK_PERM_X &&
		    !strcmp(maps->v[i].path, t->exe))
			return &maps->v[i];
	return NULL;
}

/* The same among those that are known of @p. */
static const struct mlk_mapping *program_of(const struct process *p)
{
	const struct mlk_mapping *m = p->golang.start ? maps_find(&p->maps, p->golang.start) : NULL;

	return m && m->inode == p->golang.inode ? m : program_in(&p->target, &p->maps);
}

void session_find_golang(struct process *p, struct event_go *go)
{
	struct go_program program = {0};
	struct maps maps = {0};
	const struct mlk_mapping *m = NULL;

	target_describe(&p->target); /* another program may have been started by exec */
	if (!target_read_maps(&p->target, &maps))
		m = program_in(&p->target, &maps);
	if (m)
		go_program_know(&program, &p->target, m);
	*go = program.capture;
	maps_release(&maps);
}

int session_keep_part(struct session *s, const struct event_part *part, size_t size)
{
	if (!s->go_stacks)
		s->go_stacks = go_stacks_new();
	if (!s->go_stacks)
		return -ENOMEM;
	return go_stacks_keep(s->go_stacks, part, size) ? 0 : -EPROTO;
}

bool session_join(struct session *s, struct process *p, uint64_t id, struct go_stack *stack)
{
	const struct mlk_mapping *m = program_of(p);

	return s->go_stacks && m && go_program_know(&p->golang, &p->target, m) &&
	       go_stacks_join(s->go_stacks, &p->golang, id, s->stack_limit, stack);
}
