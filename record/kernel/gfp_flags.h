/* gfp_flags.h - the kernel's allocation flags in words, as its own tracepoints print them */
#ifndef RECORD_GFP_FLAGS_H
#define RECORD_GFP_FLAGS_H

#include <stddef.h>
#include <stdint.h>

struct btf;

#define GFP_BITS      32
#define GFP_SETS      13
#define GFP_NAME_SIZE 28

/* Flags that have a name together, as GFP_KERNEL. */
struct gfp_set {
	const char *name;
	uint32_t mask;
};

/* What the flags of one kernel mean. */
struct gfp_flags {
	char names[GFP_BITS][GFP_NAME_SIZE]; /* by bit, as __GFP_ZERO; "" where not known */
	struct gfp_set sets[GFP_SETS];	     /* in the order in which they are looked for */
};

/* Find out what they mean to the kernel of version @release: by its types @btf, if these have the
 * flags (from 6.10 on); NULL or without them, by tables of versions. */
void gfp_flags_init(struct gfp_flags *f, const char *release, const struct btf *btf);

/* Write the flags @gfp into @text, of @room bytes, as GFP_KERNEL|__GFP_ZERO; bits without a name as
 * 0x..., and 0 as 0x0. */
void gfp_flags_text(const struct gfp_flags *f, uint32_t gfp, char *text, size_t room);

#endif
