/* variables.c - see variables.h: nothing of an image is believed before it was checked */
#include "report/reach/variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format/reader.h"
#include "report/base/array.h"

#define MOST_VARIABLES ((size_t)4 << 20) /* of a process; others have no names */

static int read_modules(struct root_modules *m, struct mlk_reader *trace)
{
	struct mlk_record record;
	int more = 0, err = trace_modules_new(&m->images);

	mlk_reader_rewind(trace, MLK_RECORD_MODULE);
	while (!err && (more = mlk_reader_next(trace, &record)) > 0)
		err = trace_modules_add_piece(m->images, &record.module);
	if (err || more)
		return err ? err : more;
	return module_paths_init(&m->paths, m->images);
}

int root_modules_new(struct root_modules **out, struct mlk_reader *trace)
{
	struct root_modules *m = calloc(1, sizeof(*m));
	int err = m ? read_modules(m, trace) : -ENOMEM;

	*out = NULL;
	if (err)
		root_modules_free(m);
	else
		*out = m;
	return err;
}

void root_modules_free(struct root_modules *modules)
{
	if (!modules)
		return;
	trace_modules_free(modules->images);
	module_paths_release(&modules->paths);
	free(modules);
}

/* The writable segment of @image that @range is mapped from.  False: none. */
static bool find_segment(const struct trace_module *image, const struct mlk_range *range,
			 Elf64_Phdr *segment)
{
	for (size_t i = 0; module_segment(image, i, segment); i++) {
		uint64_t page = segment->p_offset & ~(uint64_t)0xfff;

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_W &&
		    range->offset >= page && range->offset - page < segment->p_filesz + 0xfff)
			return true;
	}
	return false;
}

/* Where variables are added, and of what. */
struct adding {
	struct variables *to;
	const struct trace_module *image;
	uint64_t bias;
	struct data_area area;
};

static int add_symbol(void *arg, const struct module_symbol *of)
{
	struct adding *a = arg;
	const Elf64_Sym *symbol = of->symbol;
	struct variables *v = a->to;
	uint64_t start = symbol->st_value + a->bias;
	const struct variable new = {.start = start,
				     .end = start + symbol->st_size,
				     .name = of->name,
				     .name_len = strcspn(of->name, "@"),
				     .file = of->file,
				     .path = a->image->path};

	if (ELF64_ST_TYPE(symbol->st_info) != STT_OBJECT || symbol->st_shndx == SHN_UNDEF ||
	    !symbol->st_size || start < a->area.start || start >= a->area.end ||
	    symbol->st_size > a->area.end - start || v->nr >= MOST_VARIABLES)
		return 0;
	return array_append(&v->all, &v->nr, &v->room, &new, sizeof(new));
}

static bool knows_area(const struct variables *v, const struct data_area *area)
{
	const struct data_area *last = v->nr_areas ? &v->areas[v->nr_areas - 1] : NULL;

	return last && area->start <= last->start;
}

/* Add what is mapped by @range, and by the ranges behind it that are of the same segment. */
static int add_range(struct variables *v, const struct root_modules *modules,
		     const struct mlk_range *range)
{
	const struct trace_module *image =
		range->path[0] == '/' ? module_paths_find(&modules->paths, range->path) : NULL;
	struct adding a = {.to = v, .image = image};
	Elf64_Phdr segment;
	int err;

	if (!image || !find_segment(image, range, &segment))
		return 0;
	a.bias = range->start - range->offset - (segment.p_vaddr - segment.p_offset);
	a.area = (struct data_area){a.bias + segment.p_vaddr,
				    a.bias + segment.p_vaddr + segment.p_memsz, image->path};
	if (a.area.end < a.area.start || knows_area(v, &a.area))
		return 0;
	err = array_append(&v->areas, &v->nr_areas, &v->room_areas, &a.area, sizeof(a.area));
	return err ? err : module_each_symbol(image, add_symbol, &a);
}

static size_t underscores(const struct variable *v)
{
	return strspn(v->name, "_");
}

/* By address; of aliases the larger and the plainer one first. */
static int compare_variables(const void *a, const void *b)
{
	const struct variable *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	if (underscores(x) != underscores(y))
		return underscores(x) < underscores(y) ? -1 : 1;
	return strcmp(x->name, y->name);
}

int variables_find(struct variables *v, const struct root_modules *modules,
		   const struct mlk_pass *pass)
{
	size_t kept = 0;
	int err = 0;

	*v = (struct variables){0};
	for (size_t i = 0; i < pass->nr_ranges && !err; i++)
		err = add_range(v, modules, &pass->ranges[i]);
	if (v->nr)
		qsort(v->all, v->nr, sizeof(*v->all), compare_variables);
	for (size_t i = 0; i < v->nr; i++)
		if (!kept || v->all[kept - 1].start != v->all[i].start)
			v->all[kept++] = v->all[i];
	v->nr = kept;
	return err;
}

size_t variables_before(const struct variables *v, uint64_t address)
{
	size_t low = 0, high = v->nr;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v->all[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct data_area *variables_area(const struct variables *v, uint64_t address)
{
	size_t low = 0, high = v->nr_areas;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (v->areas[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address < v->areas[low - 1].end ? &v->areas[low - 1] : NULL;
}

void variables_release(struct variables *v)
{
	free(v->all);
	free(v->areas);
	*v = (struct variables){0};
}
