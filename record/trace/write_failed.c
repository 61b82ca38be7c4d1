/* write_failed.c - see write_failed.h */
#include "record/trace/write_failed.h"

#include <errno.h>
#include <string.h>

#include "format/trace.h"
#include "mleak.h"

void write_failed_tell(const char *path, int err, bool begun)
{
	if (err == -ECANCELED)
		log_error("%s: mleak was told to end, and the program that reads the trace from "
			  "the standard output does not read",
			  begun ? "the recording ends" : "nothing is recorded");
	else if (err == -EPIPE && !strcmp(path, "-"))
		log_error("%s: the program that reads the trace from the standard output has ended",
			  begun ? "the recording ends" : "nothing is recorded");
	else if (begun)
		log_error("the trace '%s' ends early: %s; what it holds so far can be reported",
			  path, mlk_strerror(err));
	else
		log_error("cannot write the trace '%s': %s%s", path, mlk_strerror(err),
			  err == -EAGAIN
				  ? "; its thread takes a higher limit on processes (ulimit -u)"
				  : "");
}
