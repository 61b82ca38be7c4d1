/* dry_run.c - a line for each site */
#include "record/allocator/dry_run.h"

#include <inttypes.h>

#include "mleak.h"

static const char *cost(const struct alloc_site *site)
{
	if (site->emulated)
		return "emulated";
	return site->jumped_to ? "single-stepped: a jump leads to the cheaper place"
			       : "single-stepped: no known pattern";
}

static const char *events(const struct alloc_site *site)
{
	if (site->kind == SITE_FREE)
		return "entry";
	return site->by_ret ? "entry+ret" : "entry+return";
}

static void print_site(FILE *out, const struct alloc_site *site)
{
	fprintf(out, "  %-38s 0x%-8" PRIx64 " +%-3" PRIu64 " %-13s ", site->name, site->function,
		site->offset, events(site));
	for (unsigned int i = 0; i < sizeof(site->bytes); i++)
		if (i < site->nr_bytes)
			fprintf(out, "%s%02x", i && i == site->offset ? "|" : "", site->bytes[i]);
		else
			fputs("  ", out);
	fprintf(out, "  %s\n", cost(site));
}

void dry_run_print(FILE *out, const struct target *t, const struct allocators *a)
{
	size_t nr = 0, emulated = 0;

	fprintf(out, "process %d (", (int)t->pid);
	print_harmless(out, t->comm);
	fprintf(out, ")%s\n",
		a->guessed ? "; the loader's list could not be read: objects in the order of "
			     "their addresses"
			   : "");
	for (size_t i = 0; i < a->nr; i++) {
		const struct alloc_object *o = &a->v[i];

		print_harmless(out, o->path);
		fprintf(out, ": %s\n", o->why);
		for (size_t k = 0; k < o->nr; k++) {
			print_site(out, &o->sites[k]);
			emulated += o->sites[k].emulated;
		}
		if (o->returns.nr)
			fprintf(out, "  %zu return instructions of the functions marked ret\n",
				o->returns.nr);
		if (o->left[0])
			fprintf(out, "  %s is not probed: %s\n", o->left, o->why_left);
		if (o->operators_left)
			fputs("  operator new and delete, which call these, are not probed\n", out);
		nr += o->nr;
	}
	fprintf(out,
		"%zu functions; the kernel emulates the probed instruction of %zu, the other %zu "
		"cost a second trap\n",
		nr, emulated, nr - emulated);
}
