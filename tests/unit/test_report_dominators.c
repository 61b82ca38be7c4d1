/* test_report_dominators.c - dominators of random graphs are those that taking nodes away shows */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/reach/graph/dominators.h"

#define NODES  40
#define ROUNDS 4000

static uint64_t seed = 7;

static uint32_t random_below(uint32_t limit)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33) % limit;
}

struct random_graph {
	struct dom_graph graph;
	uint32_t first[NODES + 1], to[NODES * 8];
};

static void make_graph(struct random_graph *g)
{
	uint32_t nr = 1 + random_below(NODES), most = 1 + random_below(5), edges = 0;

	for (uint32_t i = 0; i < nr; i++) {
		uint32_t degree = random_below(most + 1);

		g->first[i] = edges;
		/* also to itself, and twice to another one */
		while (degree--)
			g->to[edges++] = random_below(nr);
	}
	g->first[nr] = edges;
	g->graph = (struct dom_graph){nr, g->first, g->to};
}

/* Which nodes are reached from node 0 without @without. */
static void reach_without(const struct dom_graph *g, uint32_t without, bool *reached)
{
	bool changed = without != 0;

	memset(reached, 0, NODES);
	reached[0] = changed;
	while (changed) {
		changed = false;
		for (uint32_t i = 0; i < g->nr; i++)
			for (uint32_t e = g->first[i]; reached[i] && e < g->first[i + 1]; e++)
				if (g->to[e] != without && !reached[g->to[e]])
					reached[g->to[e]] = changed = true;
	}
}

/* Is @above on the way up from @node? */
static bool is_dominated(const struct dominators *d, uint32_t node, uint32_t above)
{
	while (node != above && node != DOMINATORS_NONE)
		node = d->idom[node];
	return node == above;
}

static void what_is_lost_without_a_node_is_what_it_dominates(void **state)
{
	static struct random_graph g, copy;
	bool all[NODES], left[NODES];
	size_t dominated = 0, not_reached = 0;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		struct dominators d;
		uint32_t nr_reached = 0;

		make_graph(&g);
		copy = g;
		copy.graph.to = copy.to;
		assert_int_equal(dominators_find(&d, &copy.graph, 0), 0);
		reach_without(&g.graph, DOMINATORS_NONE, all);
		for (uint32_t node = 0; node < g.graph.nr; node++) {
			nr_reached += all[node];
			not_reached += !all[node];
			assert_int_equal(d.idom[node] != DOMINATORS_NONE, all[node] && node);
		}
		assert_int_equal(d.nr_order, nr_reached);
		for (uint32_t above = 0; above < g.graph.nr; above++) {
			reach_without(&g.graph, above, left);
			for (uint32_t node = 0; node < g.graph.nr; node++) {
				if (!all[above] || !all[node])
					continue;
				assert_int_equal(is_dominated(&d, node, above), !left[node]);
				dominated += !left[node] && above && above != node;
			}
		}
		dominators_release(&d);
	}
	/* neither is rare */
	assert_true(dominated > 1000);
	assert_true(not_reached > 1000);
}

static void each_node_comes_behind_its_dominator(void **state)
{
	static struct random_graph g;

	(void)state;
	for (int round = 0; round < ROUNDS; round++) {
		uint32_t place[NODES];
		struct dominators d;

		make_graph(&g);
		assert_int_equal(dominators_find(&d, &g.graph, 0), 0);
		assert_int_equal(d.order[0], 0);
		for (uint32_t i = 0; i < d.nr_order; i++)
			place[d.order[i]] = i;
		for (uint32_t i = 1; i < d.nr_order; i++)
			assert_true(place[d.idom[d.order[i]]] < i);
		dominators_release(&d);
	}
}

/* A list as long as those of real programs: nothing may be recursive, or take its square. */
static void a_long_list_takes_no_stack(void **state)
{
	enum { LONG = 1000003 };
	uint32_t *first = malloc((LONG + 1) * sizeof(*first)), *to = malloc(LONG * sizeof(*to));
	const struct dom_graph g = {LONG, first, to};
	struct dominators d;

	(void)state;
	assert_non_null(first);
	assert_non_null(to);
	for (uint32_t i = 0; i < LONG; i++) {
		first[i] = i;
		to[i] = (i + 1) % LONG; /* the last one leads back */
	}
	first[LONG] = LONG;
	assert_int_equal(dominators_find(&d, &g, 0), 0);
	assert_int_equal(d.nr_order, LONG);
	for (uint32_t i = 1; i < LONG; i++)
		assert_int_equal(d.idom[i], i - 1);
	dominators_release(&d);
	free(first);
	free(to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_lost_without_a_node_is_what_it_dominates),
		cmocka_unit_test(each_node_comes_behind_its_dominator),
		cmocka_unit_test(a_long_list_takes_no_stack),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
