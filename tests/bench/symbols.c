/* symbols.c - what a name costs: microseconds for each new place, by libdwunw and by libdwfl
 *
 * symbols FILE...  Places are spread evenly over the functions that have a symbol.  libdwfl does
 * what it offers for the same answer: dwfl_module_addrinfo(), dwfl_module_getsrc(), and
 * dwarf_getscopes() for inlined calls; over every 20th of the places, as it takes long.
 */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "unwind/dwunw.h"

#define MAX_PLACES 20000
#define DWFL_STEP  20

struct places {
	uint64_t addr[MAX_PLACES];
	size_t nr;
};

static void fail(const char *what)
{
	fprintf(stderr, "symbols: %s\n", what);
	exit(1);
}

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* libdwfl and its view of one file, which it takes for loaded at where it is linked to. */
struct dwfl_view {
	Dwfl *dwfl;
	Dwfl_Module *module;
	GElf_Addr bias;
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static void open_dwfl(struct dwfl_view *view, const char *path)
{
	Dwarf_Addr bias;

	view->dwfl = dwfl_begin(&callbacks);
	view->module = dwfl_report_elf(view->dwfl, path, path, -1, 0, true);
	dwfl_report_end(view->dwfl, NULL, NULL);
	if (!view->module || !dwfl_module_getelf(view->module, &bias))
		fail(dwfl_errmsg(-1));
	view->bias = bias;
	dwfl_module_getdwarf(view->module, &bias);
}

static void find_places(struct places *places, struct dwfl_view *view)
{
	int nr = dwfl_module_getsymtab(view->module);
	uint64_t total = 0, at = 0, step;
	GElf_Sym sym;

	for (int pass = 0; pass < 2; pass++) {
		step = total / MAX_PLACES + 1;
		for (int i = 1; i < nr; i++) {
			if (!dwfl_module_getsym(view->module, i, &sym, NULL) ||
			    GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF)
				continue;
			if (!pass)
				total += sym.st_size;
			for (; pass && at < sym.st_size && places->nr < MAX_PLACES; at += step)
				places->addr[places->nr++] = sym.st_value + at - view->bias;
			at -= pass ? sym.st_size : 0;
		}
	}
}

static size_t ask_dwfl(struct dwfl_view *view, uint64_t addr)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit, *scopes = NULL;
	Dwfl_Line *line;
	GElf_Off offset;
	GElf_Sym sym;
	size_t known = 0;
	int nr = 0;

	addr += view->bias;
	known += !!dwfl_module_addrinfo(view->module, addr, &offset, &sym, NULL, NULL, NULL);
	line = dwfl_module_getsrc(view->module, addr);
	known += line && dwfl_lineinfo(line, NULL, NULL, NULL, NULL, NULL);
	unit = dwfl_module_addrdie(view->module, addr, &bias);
	if (unit)
		nr = dwarf_getscopes(unit, addr - bias, &scopes);
	known += nr > 0;
	free(scopes);
	return known;
}

static void bench_dwfl(const char *path, const struct places *places)
{
	struct dwfl_view view;
	double start = now_us(), opened;
	size_t known = 0, nr = 0;

	open_dwfl(&view, path);
	ask_dwfl(&view, places->addr[0]);
	opened = now_us();
	for (size_t i = 0; i < places->nr; i += DWFL_STEP, nr++)
		known += ask_dwfl(&view, places->addr[i]);
	printf("  libdwfl  %9.1f ms to the first, then %8.2f us a place (%zu places, %zu "
	       "answers)\n",
	       (opened - start) / 1e3, (now_us() - opened) / (double)nr, nr, known);
	dwfl_end(view.dwfl);
}

/* Name all places, one after the other. */
static size_t name_all(struct dwunw *dw, const struct places *places)
{
	size_t inlined = 0;

	for (size_t i = 0; i < places->nr; i++) {
		struct dwunw_frame frame = {.addr = places->addr[i]};
		struct dwunw_symbol symbol;

		if (dwunw_symbol_resolve_batch(dw, &frame, 1, &symbol))
			fail("out of memory");
		inlined += symbol.nr_inlined;
	}
	return inlined;
}

static void bench_dwunw(const char *path, const struct places *places)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct places first = {.addr = {places->addr[0]}, .nr = 1};
	double start = now_us(), opened, named;
	struct dwunw *dw;
	struct stat st;
	uint32_t module;
	size_t inlined;
	void *image;

	if (fd < 0 || fstat(fd, &st))
		fail(path);
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED || dwunw_new(&dw) || dwunw_debug_dir_add(dw, "/usr/lib/debug") ||
	    dwunw_module_add(dw, &module, path, image, (size_t)st.st_size))
		fail(path);
	name_all(dw, &first);
	opened = now_us();
	inlined = name_all(dw, places);
	named = now_us();
	name_all(dw, places);
	printf("  libdwunw %9.1f ms to the first, then %8.2f us a new place (%zu places, %zu "
	       "inlined"
	       " calls), %.3f us a known one\n",
	       (opened - start) / 1e3, (named - opened) / (double)places->nr, places->nr, inlined,
	       (now_us() - named) / (double)places->nr);
	dwunw_free(dw);
	munmap(image, (size_t)st.st_size);
	close(fd);
}

int main(int argc, char **argv)
{
	static struct places places;

	/* libdwfl would ask the network. */
	unsetenv("DEBUGINFOD_URLS");
	for (int i = 1; i < argc; i++) {
		struct dwfl_view view;

		places.nr = 0;
		open_dwfl(&view, argv[i]);
		find_places(&places, &view);
		dwfl_end(view.dwfl);
		if (!places.nr)
			fail("no symbols");
		printf("%s\n", argv[i]);
		bench_dwunw(argv[i], &places);
		bench_dwfl(argv[i], &places);
	}
	return 0;
}
