/* trace_name.c - see trace_name.h */
#include "cmdline/trace_name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"

int trace_name_check(const char *name, bool has_pid, bool numbered)
{
	for (const char *at = strchr(name, '%'); at; at = strchr(at + 2, '%')) {
		if (at[1] == 'p' && !has_pid) {
			log_error("--kernel records no process whose number %%p in '%s' could be: "
				  "leave it out",
				  name);
			return -EINVAL;
		}
		if (at[1] == 'n' && !numbered) {
			log_error("%%n in '%s' is the number of a trace, of which --switch-output "
				  "makes several: leave it out",
				  name);
			return -EINVAL;
		}
		if (!at[1] || !strchr("phtn%", at[1])) {
			log_error("--output knows %%p (process), %%h (host), %%t (time) and %%%%, "
				  "and nothing else behind a %% in '%s'",
				  name);
			return -EINVAL;
		}
	}
	return 0;
}

bool trace_name_has(const char *name, char c)
{
	const char *at = strchr(name, '%');

	while (at && at[1] != c)
		at = strchr(at + 2, '%');
	return at != NULL;
}

/* What %@c is replaced with. */
static void replacement(char c, pid_t pid, unsigned int number, char *text, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	if (c == 'p') {
		snprintf(text, size, "%d", (int)pid);
	} else if (c == 'n') {
		snprintf(text, size, "%u", number);
	} else if (c == 'h') {
		if (gethostname(text, size - 1))
			*text = '\0';
		text[size - 1] = '\0';
		for (char *at = text; *at; at++)
			if (*at == '/')
				*at = '_';
	} else if (c == 't' && localtime_r(&now, &tm)) {
		strftime(text, size, "%Y%m%d-%H%M%S", &tm);
	} else {
		snprintf(text, size, "%%");
	}
}

int trace_name_expand(char *path, size_t size, const char *name, pid_t pid, unsigned int number)
{
	size_t used = 0;

	for (; *name; name++) {
		char text[256] = {*name, '\0'};
		size_t len;

		if (*name == '%')
			replacement(*++name, pid, number, text, sizeof(text));
		len = strlen(text);
		if (used + len >= size)
			return -ENAMETOOLONG;
		memcpy(path + used, text, len);
		used += len;
	}
	path[used] = '\0';
	return 0;
}
