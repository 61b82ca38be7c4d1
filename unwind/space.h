/* space.h - what is mapped at an address */
#ifndef DWUNW_SPACE_H
#define DWUNW_SPACE_H

#include <stdint.h>

#include "unwind/dwunw.h"
#include "unwind/module.h"

struct dwunw_segment {
	uint64_t start;
	uint64_t end;		     /* first address after it */
	uint64_t bias;		     /* address in the process minus address in the file */
	struct dwunw_module *module; /* NULL: none that is known */
	uint32_t number;	     /* of the module, or DWUNW_NO_MODULE */
};

/* The segment with @addr in it, or NULL; valid as long as @space. */
const struct dwunw_segment *dwunw_space_find(struct dwunw_space *space, uint64_t addr);

#endif
