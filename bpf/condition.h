/* condition.h - whether the processor takes a jump, by its flags
 *
 * Plain C, for a test to compare it with what the processor says.
 */
#ifndef MLEAK_BPF_CONDITION_H
#define MLEAK_BPF_CONDITION_H

#include <linux/types.h>

/* Flags of the processor by which jumps are taken (Intel SDM volume 1, section 3.4.3.1). */
enum { CARRY = 1 << 0, PARITY = 1 << 2, ZERO = 1 << 6, SIGN = 1 << 7, OVERFLOW = 1 << 11 };

/* Is a jump taken whose instruction has the condition @number, where the flags are @flags?  (Volume
 * 2, appendix B.1.4.7: of two that have all bits but the lowest in common, one is the opposite.) */
static inline int is_taken(__u64 flags, __u32 number)
{
	int less = !(flags & SIGN) != !(flags & OVERFLOW), taken;

	switch (number >> 1 & 7) {
	case 0:
		taken = !!(flags & OVERFLOW);
		break;
	case 1:
		taken = !!(flags & CARRY);
		break;
	case 2:
		taken = !!(flags & ZERO);
		break;
	case 3:
		taken = !!(flags & (CARRY | ZERO));
		break;
	case 4:
		taken = !!(flags & SIGN);
		break;
	case 5:
		taken = !!(flags & PARITY);
		break;
	case 6:
		taken = less;
		break;
	default:
		taken = less || flags & ZERO;
		break;
	}
	return taken != (int)(number & 1);
}

#endif
