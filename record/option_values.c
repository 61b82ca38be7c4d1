/* option_values.c - see option_values.h */
#include "record/option_values.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#define MOST_NS 1000000000000000000ull /* 11574 days: to be added to a time without overflow */

/* Options hold the index of a word as what their enum has there. */
_Static_assert(PROBE_LINK_AUTO == 0 && PROBE_LINK_MULTI == 1 && PROBE_LINK_PERF == 2 &&
		       RETURNS_AUTO == 0 && BACKEND_AUTO == 0 && BACKEND_BPF == 1 &&
		       sizeof(enum probe_link) == sizeof(int),
	       "the words of options.c are in the order of these");

int option_pid(const struct option_info *option, const char *text, struct record_opts *o)
{
	uint64_t pid;
	int err = option_number(option, text, 1, INT_MAX,
				"the number of a process, as 'ps -e' shows it", &pid);

	if (err)
		return err;
	if (o->nr_pids == RECORD_MAX_PIDS) {
		log_error("too many processes: give at most %d with -p", RECORD_MAX_PIDS);
		return -EINVAL;
	}
	o->pids[o->nr_pids++] = (pid_t)pid;
	return 0;
}

int option_duration(const struct option_info *option, const char *text, uint64_t *ns)
{
	int err = option_time(option, text, 1, ns);

	return !err && *ns > MOST_NS ? option_refuse(option, "at most 11574 days", text) : err;
}

int option_stack_size(const struct option_info *option, const char *text, uint32_t *bytes)
{
	uint64_t value = 0;
	int err = option_bytes(option, text, 128, MLK_MAX_STACK, "bytes from 128 to 64K", &value);

	*bytes = (uint32_t)value;
	return err;
}

int option_ring_size(const struct option_info *option, const char *text, uint32_t *bytes)
{
	static const char wanted[] = "a power of two from 64K to 1G, as 16M";
	uint64_t value = 0;
	int err = option_bytes(option, text, 1 << 16, 1 << 30, wanted, &value);

	*bytes = (uint32_t)value;
	return !err && value & (value - 1) ? option_refuse(option, wanted, text) : err;
}

int option_level(const struct option_info *option, const char *text, int *level)
{
	uint64_t value = 0;
	int err = option_number(option, text, 1, 19, "a number from 1 to 19", &value);

	*level = (int)value;
	return err;
}

int option_choice(const struct option_info *option, const char *text, int *choice)
{
	*choice = option_word(option, text);
	return *choice < 0 ? *choice : 0;
}

int option_on_full(const struct option_info *option, const char *text, uint64_t *block_ns)
{
	*block_ns = 0;
	if (!strcmp(text, "drop"))
		return 0;
	*block_ns = OPTION_BLOCK_NS;
	if (!strcmp(text, "block"))
		return 0;
	if (!strncmp(text, "block=", 6))
		return option_duration(option, text + 6, block_ns);
	return option_refuse(option, "drop, block or block=TIME", text);
}

int option_prefix(const struct option_info *option, const char *text, const char **prefix)
{
	*prefix = text;
	if (*text && strlen(text) < 32)
		return 0;
	return option_refuse(option, "1 to 31 characters, with which names of functions begin",
			     text);
}
