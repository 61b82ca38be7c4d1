/* reasons.c - see reasons.h */
#include "record/inject/reasons.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "record/base/proc.h"
#include "record/inject/inject.h"

#define YAMA "kernel.yama.ptrace_scope"

void reason_denied(char *why, int err)
{
	static const char *const scopes[] = {
		[1] = "may be traced by what has begun it alone (" YAMA " is 1): run mleak as "
		      "root, or set that to 0",
		[2] = "may be traced by root alone (" YAMA " is 2): run mleak as root",
		[3] = "may be traced by nobody (" YAMA " is 3) until the machine is started anew",
	};
	char text[16] = "";
	unsigned long scope;

	if (err == -EACCES || err == -EPERM)
		proc_read(text, sizeof(text), "/proc/sys/kernel/yama/ptrace_scope");
	scope = strtoul(text, NULL, 10);
	if (scope > 0 && scope < sizeof(scopes) / sizeof(scopes[0]))
		snprintf(why, INJECT_WHY, "%s", scopes[scope]);
	else
		snprintf(why, INJECT_WHY, "does not let its memory be written: %s", strerror(-err));
}
