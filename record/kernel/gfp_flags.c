/* gfp_flags.c - see gfp_flags.h */
#include "record/kernel/gfp_flags.h"

#include <bpf/btf.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "record/base/kernel.h"

/* The bits that are the same from 5.10 to 7.3: include/linux/gfp.h, from 6.0 on gfp_types.h. */
static const char *const common[] = {
	"DMA",	 "HIGHMEM",    "DMA32",		"MOVABLE",  "RECLAIMABLE",    "HIGH",
	"IO",	 "FS",	       "ZERO",		"",	    "DIRECT_RECLAIM", "KSWAPD_RECLAIM",
	"WRITE", "NOWARN",     "RETRY_MAYFAIL", "NOFAIL",   "NORETRY",	      "MEMALLOC",
	"COMP",	 "NOMEMALLOC", "HARDWALL",	"THISNODE", "ACCOUNT",
};

/* Those that are not, in kernels of x86-64: [since, until). */
static const struct {
	int bit;
	const char *name;
	int since[2], until[2];
} others[] = {
	{9, "ATOMIC", {0, 0}, {6, 3}},
	{23, "NOLOCKDEP", {0, 0}, {5, 14}},
	{23, "ZEROTAGS", {5, 14}, {99, 0}},
	{24, "SKIP_KASAN_POISON", {5, 14}, {5, 18}}, /* later only where memory has tags */
	{25, "NOLOCKDEP", {5, 14}, {5, 18}},
	{27, "NOLOCKDEP", {5, 18}, {6, 4}},
	{26, "NOLOCKDEP", {6, 4}, {6, 10}}, /* later ones have an enum: they depend on options */
};

#define NR(array) (sizeof(array) / sizeof((array)[0]))

static void name_bit(struct gfp_flags *f, unsigned int bit, const char *name, int len)
{
	if (len)
		snprintf(f->names[bit], sizeof(f->names[bit]), "__GFP_%.*s", len, name);
}

/* From 6.10 on the bits are an enum, ___GFP_DMA_BIT and so on.  False: @btf has it not. */
static bool read_enum(struct gfp_flags *f, const struct btf *btf)
{
	static const char prefix[] = "___GFP_", suffix[] = "_BIT";
	const size_t before = sizeof(prefix) - 1, behind = sizeof(suffix) - 1;
	__u32 nr = btf ? btf__type_cnt(btf) : 0;
	bool found = false;

	for (__u32 id = 1; id < nr && !found; id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		const struct btf_enum *e = btf_is_enum(t) ? btf_enum(t) : NULL;

		for (__u16 i = 0; e && i < btf_vlen(t); i++) {
			const char *name = btf__name_by_offset(btf, e[i].name_off);
			size_t len = strlen(name);

			if (strncmp(name, prefix, before) != 0)
				break;
			found = true;
			if (e[i].val >= 0 && e[i].val < GFP_BITS && len > before + behind &&
			    !strcmp(name + len - behind, suffix))
				name_bit(f, (unsigned int)e[i].val, name + before,
					 (int)(len - before - behind));
		}
	}
	return found;
}

static void read_tables(struct gfp_flags *f, const char *release)
{
	for (size_t i = 0; i < NR(common); i++)
		name_bit(f, (unsigned int)i, common[i], (int)strlen(common[i]));
	for (size_t i = 0; i < NR(others); i++)
		if (kernel_release_at_least(release, others[i].since[0], others[i].since[1], 0) &&
		    !kernel_release_at_least(release, others[i].until[0], others[i].until[1], 0))
			name_bit(f, (unsigned int)others[i].bit, others[i].name,
				 (int)strlen(others[i].name));
}

/* The bit called __GFP_@name; 0: this kernel has it not. */
static uint32_t bit(const struct gfp_flags *f, const char *name)
{
	for (unsigned int i = 0; i < GFP_BITS; i++)
		if (f->names[i][0] && !strcmp(f->names[i] + sizeof("__GFP_") - 1, name))
			return UINT32_C(1) << i;
	return 0;
}

/* The same in all these versions but for a few bits; in the order of include/trace/events/mmflags.h
 * of 5.15 to 7.3, the largest first. */
static void name_sets(struct gfp_flags *f, const char *release)
{
	uint32_t kswapd = bit(f, "KSWAPD_RECLAIM");
	uint32_t reclaim = kswapd | bit(f, "DIRECT_RECLAIM");
	uint32_t kernel = reclaim | bit(f, "IO") | bit(f, "FS");
	uint32_t user = kernel | bit(f, "HARDWALL"), highuser = user | bit(f, "HIGHMEM");
	uint32_t movable = highuser | bit(f, "MOVABLE") | bit(f, "SKIP_KASAN") |
			   bit(f, "SKIP_KASAN_POISON") | bit(f, "SKIP_KASAN_UNPOISON");
	uint32_t light =
		(movable | bit(f, "COMP") | bit(f, "NOMEMALLOC") | bit(f, "NOWARN")) & ~reclaim;
	/* "gfp: include __GFP_NOWARN in GFP_NOWAIT" of 9 November 2023 (16f5dfbc851b), 6.8. */
	bool warns = !kernel_release_at_least(release, 6, 8, 0);
	const struct gfp_set sets[GFP_SETS] = {
		{"GFP_TRANSHUGE", light | bit(f, "DIRECT_RECLAIM")},
		{"GFP_TRANSHUGE_LIGHT", light},
		{"GFP_HIGHUSER_MOVABLE", movable},
		{"GFP_HIGHUSER", highuser},
		{"GFP_USER", user},
		{"GFP_KERNEL_ACCOUNT", kernel | bit(f, "ACCOUNT")},
		{"GFP_KERNEL", kernel},
		{"GFP_NOFS", reclaim | bit(f, "IO")},
		{"GFP_ATOMIC", bit(f, "HIGH") | bit(f, "ATOMIC") | kswapd},
		{"GFP_NOIO", reclaim},
		{"GFP_NOWAIT", kswapd | (warns ? 0 : bit(f, "NOWARN"))},
		{"GFP_DMA", bit(f, "DMA")},
		{"GFP_DMA32", bit(f, "DMA32")},
	};

	memcpy(f->sets, sets, sizeof(sets));
}

void gfp_flags_init(struct gfp_flags *f, const char *release, const struct btf *btf)
{
	memset(f, 0, sizeof(*f));
	if (!read_enum(f, btf))
		read_tables(f, release);
	name_sets(f, release);
}

static void add(char *text, size_t room, const char *name)
{
	size_t len = strlen(text);

	snprintf(text + len, room - len, "%s%s", len ? "|" : "", name);
}

void gfp_flags_text(const struct gfp_flags *f, uint32_t gfp, char *text, size_t room)
{
	uint32_t left = gfp;
	char rest[16];

	text[0] = '\0';
	for (size_t i = 0; i < GFP_SETS; i++)
		if (f->sets[i].mask && (left & f->sets[i].mask) == f->sets[i].mask) {
			add(text, room, f->sets[i].name);
			left &= ~f->sets[i].mask;
		}
	for (unsigned int i = 0; i < GFP_BITS; i++)
		if (left >> i & 1 && f->names[i][0]) {
			add(text, room, f->names[i]);
			left &= ~(UINT32_C(1) << i);
		}
	snprintf(rest, sizeof(rest), "0x%x", left);
	if (left || !gfp)
		add(text, room, rest);
}
