/* dict.c - open addressing with a round number, so that emptying costs nothing */
#include "format/event/dict.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void mlk_dict_reset(struct mlk_dict *d)
{
	d->nr = 0;
	d->round++;
	if (d->round == 0 && d->slots) { /* wrapped: old rounds would look new */
		memset(d->slots, 0, d->room * sizeof(*d->slots));
		d->round = 1;
	}
}

void mlk_dict_release(struct mlk_dict *d)
{
	free(d->slots);
	memset(d, 0, sizeof(*d));
}

static bool is_free(const struct mlk_dict *d, const struct mlk_dict_slot *s)
{
	return s->round != d->round || !s->value;
}

static struct mlk_dict_slot *find(const struct mlk_dict *d, uint64_t key)
{
	size_t i = mlk_dict_first(d, key);

	while (!is_free(d, &d->slots[i]) && d->slots[i].key != key)
		i = (i + 1) & (d->room - 1);
	return &d->slots[i];
}

static bool grow(struct mlk_dict *d)
{
	struct mlk_dict wider = {
		.room = d->room ? d->room * 2 : 1024, .nr = d->nr, .round = d->round};

	wider.slots = calloc(wider.room, sizeof(*wider.slots));
	if (!wider.slots)
		return false;
	for (size_t i = 0; i < d->room; i++)
		if (!is_free(d, &d->slots[i]))
			*find(&wider, d->slots[i].key) = d->slots[i];
	free(d->slots);
	*d = wider;
	return true;
}

uint32_t *mlk_dict_at(struct mlk_dict *d, uint64_t key)
{
	struct mlk_dict_slot *s;

	if (!d->round)
		d->round = 1;
	if ((d->nr + 1) * 2 > d->room && !grow(d))
		return NULL;
	s = find(d, key);
	if (is_free(d, s)) {
		*s = (struct mlk_dict_slot){.key = key, .round = d->round};
		d->nr++;
	}
	return &s->value;
}

uint32_t mlk_dict_get(const struct mlk_dict *d, uint64_t key)
{
	const struct mlk_dict_slot *s;

	if (!d->room)
		return 0;
	s = find(d, key);
	return is_free(d, s) ? 0 : s->value;
}
