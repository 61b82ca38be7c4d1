/* filters_sweep.h - the filters' tables in the kernel, without what belongs to processes and
 * threads that have ended */
#ifndef RECORD_FILTERS_SWEEP_H
#define RECORD_FILTERS_SWEEP_H

#include <stdbool.h>
#include <stdint.h>

struct mleak_bpf;

#define FILTERS_SWEEP_TABLES 3

/* How far it has come; all zero: not begun. */
struct filters_sweep {
	int table;
	bool inside; /* that table, from where @at says on */
	uint64_t at;
};

/* Look through a part of the tables of @skel, as much as takes some ten milliseconds.  Returns
 * whether there is more to do: then it is to be called again. */
bool filters_sweep(const struct mleak_bpf *skel, struct filters_sweep *sweep);

#endif
