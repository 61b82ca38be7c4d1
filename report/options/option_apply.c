/* option_apply.c - see option_apply.h: a table of what is set by which option */
#include "report/options/option_apply.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cmdline/values.h"
#include "mleak.h"
#include "report/decode/worker_pool.h"
#include "report/live/live_around.h"
#include "report/name/stack_id.h"
#include "report/options/option_table.h"
#include "report/options/verdict_options.h"
#include "report/trace/trace_marks.h"

static int apply_flat(struct report_opts *opts, const struct option_info *o, const char *text)
{
	(void)o, (void)text;
	opts->format = FORMAT_FLAT;
	return 0;
}

static int apply_folded(struct report_opts *opts, const struct option_info *o, const char *text)
{
	(void)o, (void)text;
	opts->format = FORMAT_FOLDED;
	return 0;
}

static int apply_top(struct report_opts *opts, const struct option_info *o, const char *text)
{
	uint64_t number = 0;
	int err = option_number(o, text, 1, SIZE_MAX, NULL, &number);

	opts->view.top = (size_t)number;
	return err;
}

/* The number at the beginning of *@at, which is moved behind it. */
static int number_of_process(const char **at, uint32_t *pid)
{
	unsigned long value;
	char *end;

	if (!isdigit((unsigned char)**at))
		return -EINVAL;
	errno = 0;
	value = strtoul(*at, &end, 10);
	*at = end;
	if (errno || !value || value > INT32_MAX)
		return -EINVAL;
	*pid = (uint32_t)value;
	return 0;
}

static int apply_pid(struct report_opts *opts, const struct option_info *o, const char *text)
{
	const char *at = text;
	int err = number_of_process(&at, &opts->choice.pid);

	opts->choice.pid_before = 0;
	if (!err && *at == ',') {
		opts->choice.pid_before = opts->choice.pid;
		at++;
		err = number_of_process(&at, &opts->choice.pid);
	}
	return !err && !*at
		       ? 0
		       : option_refuse(
				 o, "the number of a process, or of a difference two as 1234,5678",
				 text);
}

static int apply_jobs(struct report_opts *opts, const struct option_info *o, const char *text)
{
	uint64_t number;
	int err = option_number(o, text, 1, UINT64_MAX, NULL, &number);

	if (err)
		return err;
	opts->nr_threads = number < WORKER_POOL_MAX ? (unsigned int)number : WORKER_POOL_MAX;
	return 0;
}

/* Its unit is another one than that of other times, unless it is given. */
static int apply_temporary(struct report_opts *opts, const struct option_info *o, const char *text)
{
	uint64_t ms;
	int err = value_number(text, &ms);

	if (err)
		err = value_time(text, &opts->temporary_ns);
	else if (__builtin_mul_overflow(ms, UINT64_C(1000000), &opts->temporary_ns))
		err = -EINVAL;
	if (!err && opts->temporary_ns)
		return 0;
	return option_refuse(o, "a number of milliseconds from 1, or a time as 2s", text);
}

static int apply_function(struct report_opts *opts, const struct option_info *o, const char *text)
{
	int err = stack_filter_check(text);

	opts->view.sieve.function = text;
	return err == -EINVAL ? option_refuse(o, "an extended regular expression", text) : err;
}

static int apply_stack(struct report_opts *opts, const struct option_info *o, const char *text)
{
	opts->view.sieve.by_id = true;
	return stack_id_parse(text, &opts->view.sieve.id)
		       ? option_refuse(o, "the id of a stack, up to 16 hexadecimal digits", text)
		       : 0;
}

static int apply_around(struct report_opts *opts, const struct option_info *o, const char *text)
{
	uint64_t number = 0;
	int err = option_number(o, text, 1, LIVE_MAX_NEAR, NULL, &number);

	opts->around = (size_t)number;
	return err;
}

/* A moment: a time, or the name of a mark, whose time is looked up in the trace. */
struct moment {
	uint64_t *ns;
	const char **mark;
};

static bool is_mark(const char *text)
{
	size_t len = strlen(TRACE_MARKS_PREFIX);

	return !strncmp(text, TRACE_MARKS_PREFIX, len) && text[len];
}

/* Read @text, which is borrowed.  Returns 0 or -EINVAL. */
static int read_moment(struct moment moment, const char *text)
{
	*moment.ns = 0;
	*moment.mark = is_mark(text) ? text : NULL;
	return *moment.mark ? 0 : value_time(text, moment.ns);
}

/* The comma between two moments; NULL: it is one, perhaps a mark with commas in its text. */
static const char *find_comma(const char *text)
{
	const char *comma = strchr(text, ',');
	uint64_t ns;

	if (!is_mark(text))
		return comma;
	while (comma && !is_mark(comma + 1) && value_time(comma + 1, &ns))
		comma = strchr(comma + 1, ',');
	return comma;
}

/* Two moments with a comma between.  Returns 0, -EINVAL or -ENOMEM. */
static int read_moments(struct report_opts *opts, struct moment from, struct moment to,
			const char *text)
{
	const char *comma = find_comma(text);

	if (!comma)
		return -EINVAL;
	free(opts->moment);
	opts->moment = strndup(text, (size_t)(comma - text));
	if (!opts->moment)
		return -ENOMEM;
	return read_moment(from, opts->moment) || read_moment(to, comma + 1) ? -EINVAL : 0;
}

static int apply_at(struct report_opts *opts, const struct option_info *o, const char *text)
{
	struct block_filter *choice = &opts->choice;
	struct moment before = {&choice->until_before_ns, &choice->until_before_mark};
	struct moment until = {&choice->until_ns, &choice->until_mark};
	int err;

	opts->at = true;
	choice->until = true;
	choice->from_ns = 0;
	choice->from_mark = NULL;
	choice->moments = find_comma(text) != NULL;
	err = choice->moments ? read_moments(opts, before, until, text) : read_moment(until, text);
	return err == -EINVAL
		       ? option_refuse(o,
				       "a time as 10s or a mark as mark:1, or of a difference two "
				       "as 10s,5m",
				       text)
		       : err;
}

static int apply_between(struct report_opts *opts, const struct option_info *o, const char *text)
{
	struct block_filter *choice = &opts->choice;
	struct moment from = {&choice->from_ns, &choice->from_mark};
	struct moment until = {&choice->until_ns, &choice->until_mark};
	int err = read_moments(opts, from, until, text);

	opts->between = true;
	choice->until = true;
	choice->moments = false;
	if (!err && !choice->from_mark && !choice->until_mark && choice->until_ns < choice->from_ns)
		err = -EINVAL;
	return err == -EINVAL
		       ? option_refuse(o,
				       "two times as 10s,5m or marks as mark:1,mark:2, the second "
				       "not before the first",
				       text)
		       : err;
}

/* "lost", "lost:BYTES", or BYTES. */
static int apply_fail_on_leak(struct report_opts *opts, const struct option_info *o,
			      const char *text)
{
	opts->fail_on_leak = true;
	if (text && !strncmp(text, "lost", 4) && (!text[4] || text[4] == ':')) {
		opts->fail_on_lost = true;
		text = text[4] ? text + 5 : NULL;
	}
	return text ? option_bytes(o, text, 0, UINT64_MAX, NULL, &opts->fail_bytes) : 0;
}

static int apply_fail_on(struct report_opts *opts, const struct option_info *o, const char *text)
{
	int word = option_word(o, text);

	opts->fail_on_leak |= word == 0 || word == 2;
	opts->fail_on_lost |= word == 2;
	opts->fail_on_growing |= word == 1;
	return word < 0 ? word : 0;
}

static int apply_max_memory(struct report_opts *opts, const struct option_info *o, const char *text)
{
	return option_bytes(o, text, 1 << 20, UINT64_MAX, "a size of at least 1M, as 500M or 4G",
			    &opts->max_memory);
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int apply_debug_dir(struct report_opts *opts, const struct option_info *o, const char *text)
{
	if (!is_directory(text))
		return option_refuse(o, "a directory that is here", text);
	opts->debug_dirs[opts->nr_debug_dirs++] = text;
	return 0;
}

static int apply_symfs(struct report_opts *opts, const struct option_info *o, const char *text)
{
	if (!is_directory(text))
		return option_refuse(o, "a directory that is here", text);
	opts->symfs = text;
	return 0;
}

static int apply_vmlinux(struct report_opts *opts, const struct option_info *o, const char *text)
{
	struct stat st;

	if (stat(text, &st) || !S_ISREG(st.st_mode))
		return option_refuse(o, "a file that is here", text);
	opts->vmlinux = text;
	return 0;
}

static int apply_dump(struct report_opts *opts, const struct option_info *o, const char *text)
{
	if (text && strcmp(text, "full") != 0)
		return option_refuse(o, "full, or nothing", text);
	opts->dump_stacks = text || opts->dump;
	opts->dump = true;
	return 0;
}

static int apply_addr(struct report_opts *opts, const struct option_info *o, const char *text)
{
	opts->find_addr = true;
	return value_address(text, &opts->addr)
		       ? option_refuse(o, "an address as 0x55d0c0a812c0", text)
		       : 0;
}

/* How an option's argument is read, and to what it is written. */
enum kind {
	FLAG,	/* a bool becomes true */
	TEXT,	/* const char *: the argument */
	NUMBER, /* uint64_t */
	BYTES,	/* uint64_t */
	TIME,	/* uint64_t, in nanoseconds */
	WORD,	/* an enum: the index among the option's values, to which @first is added */
};

#define TO(member) .offset = offsetof(struct report_opts, member)

static const struct effect {
	int option;
	enum kind kind;
	size_t offset; /* in struct report_opts */
	int (*apply)(struct report_opts *opts, const struct option_info *o,
		     const char *text); /* in place of both; NULL: none */
	int first;
} effects[] = {
	{'h', FLAG, TO(help)},
	{'j', .apply = apply_jobs},
	{'n', .apply = apply_top},
	{'o', TEXT, TO(output)},
	{'q', FLAG, TO(quiet)},
	{OPT_ADDR, .apply = apply_addr},
	{OPT_ADDRESSES, FLAG, TO(view.addresses)},
	{OPT_AROUND, .apply = apply_around},
	{OPT_AT, .apply = apply_at},
	{OPT_BETWEEN, .apply = apply_between},
	{OPT_BYTES, FLAG, TO(exact)},
	{OPT_BY, WORD, TO(by), .first = GROUP_NONE + 1},
	{OPT_COLOR, WORD, TO(color)},
	{OPT_COST, WORD, TO(view.cost)},
	{OPT_DEBUGINFOD, FLAG, TO(debuginfod)},
	{OPT_DEBUG_DIR, .apply = apply_debug_dir},
	{OPT_DIFF, TEXT, TO(before)},
	{OPT_DROP_RAW, FLAG, TO(drop_raw)},
	{OPT_DUMP, .apply = apply_dump},
	{OPT_FAIL_ON, .apply = apply_fail_on},
	{OPT_FAIL_ON_LEAK, .apply = apply_fail_on_leak},
	{OPT_FLAT, .apply = apply_flat},
	{OPT_FOLDED, .apply = apply_folded},
	{OPT_FORMAT, WORD, TO(format)},
	{OPT_FULL_NAMES, FLAG, TO(full_names)},
	{OPT_FULL_RECURSION, FLAG, TO(view.full_recursion)},
	{OPT_FUNCTION, .apply = apply_function},
	{OPT_GROWTH, FLAG, TO(growth)},
	{OPT_INLINE, FLAG, TO(view.inlined)},
	{OPT_INVERTED, FLAG, TO(view.inverted)},
	{OPT_LINES, WORD, TO(lines)},
	{OPT_MAX_MEMORY, .apply = apply_max_memory},
	{OPT_MIN_BLOCKS, NUMBER, TO(view.sieve.min_blocks)},
	{OPT_MIN_BYTES, BYTES, TO(view.sieve.min_bytes)},
	{OPT_MODULE, TEXT, TO(view.sieve.module)},
	{OPT_LOST, .apply = apply_lost},
	{OPT_NO_CACHE, FLAG, TO(no_cache)},
	{OPT_NO_DEMANGLE, FLAG, TO(no_demangle)},
	{OPT_NO_EMBEDDED, FLAG, TO(no_embedded)},
	{OPT_NO_LIMIT, FLAG, TO(no_limit)},
	{OPT_NO_PAGER, FLAG, TO(no_pager)},
	{OPT_OFFSETS, FLAG, TO(view.offsets)},
	{OPT_OLDER, TIME, TO(choice.older_ns)},
	{OPT_PER_PROCESS, FLAG, TO(view.each_process)},
	{OPT_PID, .apply = apply_pid},
	{OPT_ROOT, .apply = apply_root},
	{OPT_STARTS_ONLY, FLAG, TO(starts_only)},
	{OPT_TAG_MASK, .apply = apply_tag_mask},
	{OPT_FULL, FLAG, TO(full)},
	{OPT_STACK, .apply = apply_stack},
	{OPT_STRICT, FLAG, TO(strict)},
	{OPT_SUPPRESSIONS, TEXT, TO(suppressions)},
	{OPT_SYMFS, .apply = apply_symfs},
	{OPT_TEMPORARY, .apply = apply_temporary},
	{OPT_THREAD, TEXT, TO(choice.thread)},
	{OPT_TIMELINE, FLAG, TO(timeline)},
	{OPT_RESIDENT, FLAG, TO(resident)},
	{OPT_VERDICT, .apply = apply_verdict},
	{OPT_VMLINUX, .apply = apply_vmlinux},
};

static int set_value(struct report_opts *opts, const struct effect *e, const struct option_info *o,
		     const char *text)
{
	void *to = (char *)opts + e->offset;
	int word;

	switch (e->kind) {
	case FLAG:
		*(bool *)to = true;
		return 0;
	case TEXT:
		*(const char **)to = text;
		return 0;
	case NUMBER:
		return option_number(o, text, 0, UINT64_MAX, NULL, to);
	case BYTES:
		return option_bytes(o, text, 0, UINT64_MAX, NULL, to);
	case TIME:
		return option_time(o, text, 0, to);
	default:
		/* Of these, for a difference offers fewer; which is refused where all is known. */
		word = option_word(option_row_of(o->key), text);
		*(int *)to = word + e->first;
		return word < 0 ? word : 0;
	}
}

int option_apply(void *ctx, const struct option_info *o, const char *text)
{
	for (size_t i = 0; i < sizeof(effects) / sizeof(*effects); i++)
		if (effects[i].option == o->key)
			return effects[i].apply ? effects[i].apply(ctx, o, text)
						: set_value(ctx, &effects[i], o, text);
	assert(!"an option is in option_table.c and not in the table above");
	return -EINVAL;
}
