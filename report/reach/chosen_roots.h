/* chosen_roots.h - where the memory is that holds blocks because the user says so */
#ifndef REPORT_CHOSEN_ROOTS_H
#define REPORT_CHOSEN_ROOTS_H

#include "report/live/root_choice.h"
#include "report/reach/graph/reach_pass.h"
#include "report/reach/variables.h"

/* Find the @nr of @choices in what @pass has walked through: ascending areas that do not overlap in
 * *@areas, which the caller frees.  Those that are there become found.  @modules: NULL, if none has
 * a name.  Returns 0 or -ENOMEM. */
int chosen_roots_find(struct root_choice *choices, size_t nr, const struct root_modules *modules,
		      const struct mlk_pass *pass, struct reach_area **areas, size_t *nr_areas);

#endif
