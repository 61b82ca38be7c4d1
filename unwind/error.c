/* error.c - errors and statuses in words */
#include <string.h>

#include "unwind/dwunw.h"

const char *dwunw_strerror(int err)
{
	switch (err) {
	case DWUNW_ERR_ELF:
		return "not an ELF file that can be read";
	case DWUNW_ERR_ARCH:
		return "of another architecture than x86-64";
	case DWUNW_ERR_ATTACH_DENIED:
		return "the kernel does not let this user read the process";
	case DWUNW_ERR_GONE:
		return "the process or thread has ended";
	case DWUNW_ERR_OTHER:
		return "of another build than the module";
	case DWUNW_ERR_NO_DEBUG:
		return "without debug information";
	default:
		/* strerrordesc_np() gives static text, as promised; strerror() may not. */
		return err <= 0 && strerrordesc_np(-err) ? strerrordesc_np(-err) : "unknown error";
	}
}

const char *dwunw_status_text(enum dwunw_status status)
{
	static const char *const text[DWUNW_STATUS_NR] = {
		[DWUNW_STATUS_ENDED] = "complete",
		[DWUNW_STATUS_TRUNCATED] = "stack bytes end",
		[DWUNW_STATUS_NO_CFI] = "no unwind information",
		[DWUNW_STATUS_BAD_MEMORY] = "address outside of the stack",
		[DWUNW_STATUS_FRAME_LIMIT] = "too many frames",
		[DWUNW_STATUS_STALE] = "bytes from another moment",
		[DWUNW_STATUS_DEGRADED] = "cut while the buffer was filling up",
		[DWUNW_STATUS_NOT_CODE] = "return address outside of all code",
	};

	return (unsigned int)status < DWUNW_STATUS_NR ? text[status] : "unknown status";
}
