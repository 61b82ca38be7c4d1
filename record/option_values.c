/* option_values.c - see option_values.h */
#include "record/option_values.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cmdline/values.h"

#define MOST_NS 1000000000000000000ull /* 11574 days: to be added to a time without overflow */

int option_duration(const struct option_info *option, const char *text, uint64_t *ns)
{
	int err = option_time(option, text, 1, ns);

	return !err && *ns > MOST_NS ? option_refuse(option, "at most 11574 days", text) : err;
}

int option_switch(const struct option_info *option, const char *text, struct switch_opts *o)
{
	static const char wanted[] = "a size from 1M as 100M, a time from 1s as 10m, or signal";
	size_t len = strlen(text);

	*o = (struct switch_opts){.on = true, .keep = o->keep};
	if (!strcmp(text, "signal"))
		return 0;
	if (!len || !strchr("smhdKMGTBkgtb", text[len - 1]))
		return option_refuse(option, wanted, text);
	if (strchr("smhd", text[len - 1])) {
		if (value_time(text, &o->time_ns) || o->time_ns < 1000000000u)
			return option_refuse(option, wanted, text);
		return option_duration(option, text, &o->time_ns);
	}
	return option_bytes(option, text, 1 << 20, OPTION_MOST_TRACE, wanted, &o->bytes);
}

#define REACH_EXPECTED "a time as 10m, stop, 10m,stop, or 10m,spare"

int option_reach(const struct option_info *option, const char *text, struct record_opts *o)
{
	char time[32];
	const char *comma = text ? strchr(text, ',') : NULL;
	size_t len = comma ? (size_t)(comma - text) : text ? strlen(text) : 0;

	o->reach = true;
	if (!text)
		return 0;
	if (len == 4 && !memcmp(text, "stop", 4)) {
		o->reach_stop = true;
	} else if (len == 5 && !memcmp(text, "spare", 5)) {
		o->reach_spare = true;
	} else {
		snprintf(time, sizeof(time), "%.*s", (int)len, text);
		if (len >= sizeof(time) || value_time(time, &o->reach_ns))
			return option_refuse(option, REACH_EXPECTED, text);
		if (option_duration(option, time, &o->reach_ns))
			return -EINVAL;
	}
	if (comma)
		return option_reach(option, comma + 1, o);
	return o->reach_spare && !o->reach_ns ? option_refuse(option, REACH_EXPECTED, text) : 0;
}

int option_redact(const struct option_info *option, const char *text, struct record_opts *o)
{
	if (text && strcmp(text, "names") != 0)
		return option_refuse(option, "names, or nothing", text);
	o->stack_mode = MLK_STACK_REDACTED;
	o->redact = true;
	o->no_file_names |= text != NULL;
	return 0;
}
