/* moving.c - see moving.h */
#include "record/reach/moving.h"

#include <stdlib.h>

/* What is behind a pointer is missed, too: so many blocks that a way to one usually is. */
#define WAY 16

/* What may be missed at most: a block in a hundred snapshots. */
#define ENOUGH 0.01

/* Is the word at @address of the sample? */
static bool is_sampled(const struct moving *m, uint64_t address)
{
	/* multiplicative, by 2^64 over the golden ratio: the high bits are even */
	return !m->shift || (address >> 3) * UINT64_C(0x9e3779b97f4a7c15) >> (64 - m->shift) == 0;
}

static size_t thin(const struct moving *m, struct mlk_pointer *words, size_t nr)
{
	size_t kept = 0;

	for (size_t i = 0; i < nr; i++)
		if (is_sampled(m, words[i].address))
			words[kept++] = words[i];
	return kept;
}

static bool has_room(struct moving *m)
{
	if (!m->now && !m->failed) {
		m->now = calloc(MOVING_WORDS, sizeof(*m->now));
		m->before = calloc(MOVING_WORDS, sizeof(*m->before));
		m->failed = !m->now || !m->before;
	}
	return !m->failed;
}

void moving_take(struct moving *m, const struct mlk_pointer *words, size_t nr)
{
	if (!has_room(m))
		return;
	for (size_t i = 0; i < nr; i++) {
		if (!is_sampled(m, words[i].address))
			continue;
		/* words at few addresses only may all be of it */
		while (m->nr_now == MOVING_WORDS && m->shift < 63) {
			m->shift++;
			m->nr_now = thin(m, m->now, m->nr_now);
		}
		if (m->nr_now < MOVING_WORDS && is_sampled(m, words[i].address))
			m->now[m->nr_now++] = words[i];
	}
}

/* Addresses of which the word is another one, has come or has gone. */
static size_t nr_changed(const struct moving *m)
{
	size_t nr = 0, i = 0, k = 0;

	while (i < m->nr_before && k < m->nr_now) {
		const struct mlk_pointer *was = &m->before[i], *is = &m->now[k];

		nr += was->address != is->address || was->value != is->value;
		i += was->address <= is->address;
		k += is->address <= was->address;
	}
	return nr + (m->nr_before - i) + (m->nr_now - k);
}

static void compare(struct moving *m, uint64_t begin_ns)
{
	/* one that was not seen is no proof that there is none */
	double changed = (double)nr_changed(m) + 1;
	double of = (double)(m->nr_now > m->nr_before ? m->nr_now : m->nr_before) + 1;
	double apart = begin_ns > m->begin_ns ? (double)(begin_ns - m->begin_ns) : 1;
	double share = changed < of ? changed / of : 0.999;
	double rate = share / (1 - share) / apart; /* it may have moved again */

	if (rate > m->rate)
		m->rate = rate;
}

double moving_missed(const struct moving *m, double took_ns)
{
	double moves = m->rate * took_ns;

	/* one that moves all the time is seen once at the average, and so missed with 1 / e */
	return moves / (6 + 2.7 * moves);
}

bool moving_end_pass(struct moving *m, uint64_t begin_ns, uint64_t end_ns, uint64_t words,
		     unsigned int passes)
{
	struct mlk_pointer *spare = m->before;
	double left = (double)words * WAY;

	if (m->failed)
		return false;
	if (m->before)
		m->nr_before = thin(m, m->before, m->nr_before);
	if (m->compared)
		compare(m, begin_ns);
	m->compared = true;
	m->begin_ns = begin_ns;
	m->before = m->now;
	m->nr_before = m->nr_now;
	m->now = spare;
	m->nr_now = 0;
	if (passes <= MOVING_PASSES)
		m->took_ns[passes - 1] = (double)(end_ns - begin_ns);
	for (unsigned int i = 0; i < passes && i < MOVING_PASSES; i++)
		left *= moving_missed(m, m->took_ns[i]);
	return left > ENOUGH;
}

void moving_release(struct moving *m)
{
	free(m->before);
	free(m->now);
	*m = (struct moving){0};
}
