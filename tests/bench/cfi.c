/* cfi.c - time to look up call frame information at new addresses, against libdw's
 *
 * usage: cfi [FILE]...     (without any: the largest usual ones that are there)
 *
 * For each file: addresses at random places of .text, each looked up by dwunw_cfi_find() and by
 * libdw's dwarf_cfi_addrframe(), dwarf_frame_cfa() and two times dwarf_frame_register(), in the
 * same run.  "first" is the first look-up of all, which opens the sections; "new" and "again" are
 * means of the others, and of all of them once more.  At last the longest that an FDE can make it
 * take, once and for addresses throughout it.  All are nanoseconds of processor time.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/unwind_cfi_image.h"
#include "unwind/cfi/cfi.h"

#define NR_ADDRS 20000

static const char *const usual[] = {"/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/gdb",
				    "/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus",
				    "/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1"};

static double clock_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return 1e9 * (double)ts.tv_sec + (double)ts.tv_nsec;
}

static uint64_t next_random(void)
{
	static uint64_t state = 88172645463325252;

	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

/* Random addresses in .text.  Those of no FDE are as good: they are looked up, too. */
static size_t choose(Elf *elf, uint64_t *addrs)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return 0;
	while ((scn = elf_nextscn(elf, scn)) != NULL) {
		const char *name;

		if (!gelf_getshdr(scn, &sh))
			continue;
		name = elf_strptr(elf, names, sh.sh_name);
		if (!name || strcmp(name, ".text") || !sh.sh_size)
			continue;
		for (size_t i = 0; i < NR_ADDRS; i++)
			addrs[i] = sh.sh_addr + next_random() % sh.sh_size;
		return NR_ADDRS;
	}
	return 0;
}

static void ours_at(struct dwunw_cfi *cfi, uint64_t addr)
{
	const struct dwunw_cfi_row *row;

	if (dwunw_cfi_find(cfi, addr, &row))
		exit(1);
}

static void libdw_at(Dwarf_CFI *cfi, uint64_t addr)
{
	Dwarf_Op mem[3], *ops;
	Dwarf_Frame *frame;
	size_t nops;

	if (dwarf_cfi_addrframe(cfi, addr, &frame))
		return;
	dwarf_frame_cfa(frame, &ops, &nops);
	dwarf_frame_register(frame, 6, mem, &ops, &nops);
	dwarf_frame_register(frame, 16, mem, &ops, &nops);
	free(frame);
}

/* Nanoseconds: first look-up; a new address; a known one. */
struct times {
	double first, new, again;
};

static struct times time_ours(Elf *elf, const uint64_t *addrs, size_t nr)
{
	struct dwunw_cfi *cfi = dwunw_cfi_new(elf);
	double t[4];

	t[0] = clock_now_ns();
	ours_at(cfi, addrs[0]);
	t[1] = clock_now_ns();
	for (size_t i = 1; i < nr; i++)
		ours_at(cfi, addrs[i]);
	t[2] = clock_now_ns();
	for (size_t i = 1; i < nr; i++)
		ours_at(cfi, addrs[i]);
	t[3] = clock_now_ns();
	dwunw_cfi_free(cfi);
	return (struct times){t[1] - t[0], (t[2] - t[1]) / (double)(nr - 1),
			      (t[3] - t[2]) / (double)(nr - 1)};
}

static struct times time_libdw(Elf *elf, const uint64_t *addrs, size_t nr)
{
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	double t[4];

	t[0] = clock_now_ns();
	libdw_at(cfi, addrs[0]);
	t[1] = clock_now_ns();
	for (size_t i = 1; i < nr; i++)
		libdw_at(cfi, addrs[i]);
	t[2] = clock_now_ns();
	for (size_t i = 1; i < nr; i++)
		libdw_at(cfi, addrs[i]);
	t[3] = clock_now_ns();
	dwarf_cfi_end(cfi);
	return (struct times){t[1] - t[0], (t[2] - t[1]) / (double)(nr - 1),
			      (t[3] - t[2]) / (double)(nr - 1)};
}

static void measure_file(const char *path)
{
	static uint64_t addrs[NR_ADDRS];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	size_t nr = elf ? choose(elf, addrs) : 0;

	if (nr) {
		/* The pages of the file are read in by one round that does not count. */
		struct times libdw = time_libdw(elf, addrs, nr), ours = time_ours(elf, addrs, nr);

		libdw = time_libdw(elf, addrs, nr);
		ours = time_ours(elf, addrs, nr);
		printf("%-45s ours: first %9.0f new %5.0f again %4.0f   libdw: first %9.0f new "
		       "%5.0f again %5.0f   ratio: new %.1f again %.1f\n",
		       path, ours.first, ours.new, ours.again, libdw.first, libdw.new, libdw.again,
		       libdw.new / ours.new, libdw.again / ours.again);
	}
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

/* A CIE, and an FDE for the addresses from 0 on with @len bytes of instructions, of which @unit is
 * repeated. */
static struct cfi_image longest(uint8_t *eh, const char *unit, size_t unit_len, size_t len)
{
	static const uint8_t cie[] = {20, 0,  0, 0, 0,	  0, 0, 0, 1, 0, 1, 0x78,
				      16, 12, 7, 8, 0x90, 1, 0, 0, 0, 0, 0, 0};
	const uint32_t fde_len = (uint32_t)(4 + 16 + len), back = sizeof(cie) + 4;
	const uint64_t range = 1 << 20;
	struct cfi_image image = {.eh = eh, .eh_len = sizeof(cie) + 4 + fde_len};

	memset(eh, 0, image.eh_len);
	memcpy(eh, cie, sizeof(cie));
	memcpy(eh + sizeof(cie), &fde_len, 4);
	memcpy(eh + sizeof(cie) + 4, &back, 4);
	memcpy(eh + sizeof(cie) + 16, &range, 8);
	for (size_t i = 0; i + unit_len <= len; i += unit_len)
		memcpy(eh + sizeof(cie) + 24 + i, unit, unit_len);
	return image;
}

static void measure_longest(const char *what, const char *unit, size_t unit_len, size_t len)
{
	static uint8_t eh[1 << 18];
	struct cfi_image image = longest(eh, unit, unit_len, len);
	uint64_t addrs[1000];
	struct times times;
	uint8_t *bytes;
	size_t file_len;
	Elf *elf;

	bytes = cfi_image_make(&image, &file_len);
	elf = bytes ? elf_memory((char *)bytes, file_len) : NULL;
	if (!elf)
		exit(1);
	addrs[0] = len / unit_len - 1;
	for (size_t i = 1; i < 1000; i++)
		addrs[i] = next_random() % (len / unit_len);
	times = time_ours(elf, addrs, 1000);
	printf("longest FDE, %-31s ours: first %9.0f new %5.0f\n", what, times.first, times.new);
	elf_end(elf);
	free(bytes);
}

int main(int argc, char **argv)
{
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		measure_file(argv[i]);
	for (size_t i = 0; argc == 1 && i < sizeof(usual) / sizeof(usual[0]); i++)
		measure_file(usual[i]);
	measure_longest("a row each 3 bytes", "\x41\x0e\x10", 3, 98304);
	measure_longest("remember and restore", "\x41\x0a\x0e\x10\x0b", 5, 16380);
	measure_longest("and never less than one", "\x0a\x41\x0e\x10\x0a\x0e\x20\x0b", 8, 28000);
	return 0;
}
