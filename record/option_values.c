/* option_values.c - see option_values.h */
#include "record/option_values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "record/base/parse_units.h"

int option_pid(const char *text, struct record_opts *o)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno || value <= 0 || value > INT_MAX) {
		log_error("'%s' is no process id: give a number, as 'ps -e' shows it", text);
		return -EINVAL;
	}
	if (o->nr_pids == RECORD_MAX_PIDS) {
		log_error("too many processes: give at most %d with -p", RECORD_MAX_PIDS);
		return -EINVAL;
	}
	o->pids[o->nr_pids++] = (pid_t)value;
	return 0;
}

int option_duration(const char *text, uint64_t *ns)
{
	if (parse_time(text, ns))
		return 0;
	log_error("'%s' is no time: give seconds, or a number with ms, s, m, h or d", text);
	return -EINVAL;
}

int option_stack_size(const char *text, uint32_t *bytes)
{
	uint64_t value;

	if (parse_bytes(text, MLK_MAX_STACK, &value) && value >= 128) {
		*bytes = (uint32_t)value;
		return 0;
	}
	log_error("'%s' is no stack size: give bytes, from 128 to 64K", text);
	return -EINVAL;
}

int option_ring_size(const char *text, uint32_t *bytes)
{
	uint64_t value;

	if (parse_bytes(text, 1 << 30, &value) && value >= 1 << 16 && !(value & (value - 1))) {
		*bytes = (uint32_t)value;
		return 0;
	}
	log_error("'%s' is no size for the ring: give a power of two from 64K to 1G, as in 16M",
		  text);
	return -EINVAL;
}

int option_max_size(const char *text, uint64_t *bytes)
{
	if (parse_bytes(text, 1ull << 50, bytes) && *bytes >= 1 << 20)
		return 0;
	log_error("'%s' is no size for a trace: give 1M or more", text);
	return -EINVAL;
}

int option_level(const char *text, int *level)
{
	uint64_t value;

	if (parse_bytes(text, 19, &value) && value) {
		*level = (int)value;
		return 0;
	}
	log_error("'%s' is no compression level: give 1 to 19", text);
	return -EINVAL;
}

/* The index of @text among @nr names.  -EINVAL, after one sentence that calls it @what. */
static int parse_name(const char *text, const char *const *names, int nr, const char *what)
{
	for (int i = 0; i < nr; i++)
		if (!strcmp(text, names[i]))
			return i;
	log_error("'%s' is no %s; 'mleak record --help' lists them", text, what);
	return -EINVAL;
}

int option_link(const char *text, enum probe_link *link)
{
	static const char *const names[] = {"auto", "multi", "perf"};
	int found = parse_name(text, names, 3, "kind of uprobes");

	*link = found < 0 ? PROBE_LINK_AUTO : (enum probe_link)found;
	return found < 0 ? found : 0;
}

int option_returns(const char *text, enum returns_by *returns)
{
	static const char *const names[] = {"auto", "ret", "probe"};
	int found = parse_name(text, names, 3, "way to see returns");

	*returns = found < 0 ? RETURNS_AUTO : (enum returns_by)found;
	return found < 0 ? found : 0;
}

int option_embed(const char *text, enum elf_image_embed *embed)
{
	static const char *const names[] = {"none", "unwind", "symbols", "debug"};
	int found = parse_name(text, names, 4, "thing to embed");

	*embed = found < 0 ? EMBED_SYMBOLS : (enum elf_image_embed)found;
	return found < 0 ? found : 0;
}

int option_backend(const char *text, enum record_backend *backend)
{
	static const char *const names[] = {"auto", "bpf", "preload"};
	int found = parse_name(text, names, 3, "backend");

	*backend = found < 0 ? BACKEND_AUTO : (enum record_backend)found;
	return found < 0 ? found : 0;
}

int option_on_full(const char *text, uint64_t *block_ns)
{
	*block_ns = 0;
	if (!strcmp(text, "drop"))
		return 0;
	*block_ns = OPTION_BLOCK_NS;
	if (!strcmp(text, "block"))
		return 0;
	if (!strncmp(text, "block=", 6))
		return option_duration(text + 6, block_ns);
	log_error("'%s' is nothing to do with a full ring: give drop, block or block=TIME", text);
	return -EINVAL;
}

int option_prefix(const char *text, const char **prefix)
{
	*prefix = text;
	if (*text && strlen(text) < 32)
		return 0;
	log_error("'%s' is no prefix of function names: give 1 to 31 characters", text);
	return -EINVAL;
}
