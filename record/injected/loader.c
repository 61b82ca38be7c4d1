/* loader.c - the C half of the loader's call by which debuggers know of modules
 *
 * It is made when a module is mapped, and before anything of that runs: an allocator in it is
 * recorded from its first call on.
 */
#include "record/injected/halves.h"

void half_loader(const struct caller *c)
{
	uint32_t before;
	struct visit v;

	visit_begin(&v, c);
	before = visit_call(&v);
	((void (*)(void))v.site->moved)();
	visit_return(&v, before);
	preload_maps_changed(true);
	visit_end(&v);
}
