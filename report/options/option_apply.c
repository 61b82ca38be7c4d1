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

#include "mleak.h"
#include "report/decode/worker_pool.h"
#include "report/options/option_table.h"
#include "report/options/values.h"

/* Say it if an option's argument could not be read. */
static int check(int err, int option, const char *arg, const char *wanted)
{
	if (err == -EINVAL)
		log_error("--%s wants %s, not '%s'", option_row_of(option)->name, wanted, arg);
	return err;
}

static int take_format(struct report_opts *opts, const char *arg)
{
	if (!format_parse(arg, &opts->format))
		return 0;
	log_error("unknown format '%s': it is " FORMAT_NAMES, arg);
	return -EINVAL;
}

static int take_flat(struct report_opts *opts, const char *arg)
{
	(void)arg;
	opts->format = FORMAT_FLAT;
	return 0;
}

static int take_folded(struct report_opts *opts, const char *arg)
{
	(void)arg;
	opts->format = FORMAT_FOLDED;
	return 0;
}

static int take_top(struct report_opts *opts, const char *arg)
{
	uint64_t number;

	if (value_number(arg, &number) || !number || number > SIZE_MAX) {
		log_error("--top wants a number from 1, not '%s'", arg);
		return -EINVAL;
	}
	opts->view.top = (size_t)number;
	return 0;
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

static int take_pid(struct report_opts *opts, const char *arg)
{
	const char *at = arg;
	int err = number_of_process(&at, &opts->choice.pid);

	opts->choice.pid_before = 0;
	if (!err && *at == ',') {
		opts->choice.pid_before = opts->choice.pid;
		at++;
		err = number_of_process(&at, &opts->choice.pid);
	}
	return check(*at ? -EINVAL : err, OPT_PID, arg,
		     "the number of a process, or of a difference two as 1234,5678");
}

static int take_cost(struct report_opts *opts, const char *arg)
{
	for (int i = 0; i < COST_NR; i++)
		if (!strcmp(view_cost_name((enum view_cost)i), arg)) {
			opts->view.cost = (enum view_cost)i;
			return 0;
		}
	log_error("unknown cost '%s': it is outstanding, allocated, peak or temporary", arg);
	return -EINVAL;
}

static int take_jobs(struct report_opts *opts, const char *arg)
{
	uint64_t number;

	if (value_number(arg, &number) || !number)
		return check(-EINVAL, 'j', arg, "a number from 1");
	opts->nr_threads = number < CREW_MAX ? (unsigned int)number : CREW_MAX;
	return 0;
}

/* Its unit is another one than that of other times, unless it is given. */
static int take_temporary(struct report_opts *opts, const char *arg)
{
	uint64_t ms;
	int err = value_number(arg, &ms);

	if (err)
		err = value_time(arg, &opts->temporary_ns);
	else if (__builtin_mul_overflow(ms, UINT64_C(1000000), &opts->temporary_ns))
		err = -EINVAL;
	if (!err && !opts->temporary_ns)
		err = -EINVAL;
	return check(err, OPT_TEMPORARY, arg, "a number of milliseconds from 1, or a time as 2s");
}

static int take_by(struct report_opts *opts, const char *arg)
{
	return check(group_parse(arg, &opts->by), OPT_BY, arg, GROUP_NAMES);
}

static int take_color(struct report_opts *opts, const char *arg)
{
	return check(color_parse(arg, &opts->color), OPT_COLOR, arg, "auto, always or never");
}

static int take_lines(struct report_opts *opts, const char *arg)
{
	return check(lines_parse(arg, &opts->lines), OPT_LINES, arg, "auto, utf-8 or ascii");
}

static int take_function(struct report_opts *opts, const char *arg)
{
	opts->view.sieve.function = arg;
	return check(stack_filter_check(arg), OPT_FUNCTION, arg, "an extended regular expression");
}

#define A_TIME "a time as 10, 10s, 500ms, 5m, 2h or 1d"
#define A_SIZE "a number of bytes as 4096 or 64K"

static int take_at(struct report_opts *opts, const char *arg)
{
	opts->choice.until = true;
	opts->choice.from_ns = 0;
	return check(value_time(arg, &opts->choice.until_ns), OPT_AT, arg, A_TIME);
}

static int take_between(struct report_opts *opts, const char *arg)
{
	opts->choice.until = true;
	return check(value_times(arg, &opts->choice.from_ns, &opts->choice.until_ns), OPT_BETWEEN,
		     arg, "two times as 10s,5m, the second not before the first");
}

static int take_fail_on_leak(struct report_opts *opts, const char *arg)
{
	opts->fail_on_leak = true;
	return arg ? check(value_bytes(arg, &opts->fail_bytes), OPT_FAIL_ON_LEAK, arg, A_SIZE) : 0;
}

static int take_max_memory(struct report_opts *opts, const char *arg)
{
	int err = value_bytes(arg, &opts->max_memory);

	if (!err && opts->max_memory < 1 << 20)
		err = -EINVAL;
	return check(err, OPT_MAX_MEMORY, arg, "a size of at least 1M, as 500M or 4G");
}

static bool is_directory(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static int take_debug_dir(struct report_opts *opts, const char *arg)
{
	if (!is_directory(arg))
		return check(-EINVAL, OPT_DEBUG_DIR, arg, "a directory that is here");
	opts->debug_dirs[opts->nr_debug_dirs++] = arg;
	return 0;
}

static int take_symfs(struct report_opts *opts, const char *arg)
{
	if (!is_directory(arg))
		return check(-EINVAL, OPT_SYMFS, arg, "a directory that is here");
	opts->symfs = arg;
	return 0;
}

static int take_dump(struct report_opts *opts, const char *arg)
{
	if (arg && strcmp(arg, "full") != 0) {
		log_error("unknown kind of dump '%s': it is full, or nothing", arg);
		return -EINVAL;
	}
	opts->dump_stacks = arg || opts->dump;
	opts->dump = true;
	return 0;
}

static int take_addr(struct report_opts *opts, const char *arg)
{
	opts->find_addr = true;
	return check(value_address(arg, &opts->addr), OPT_ADDR, arg,
		     "an address as 0x55d0c0a812c0");
}

/* How an option's argument is read, and to what it is written. */
enum kind {
	FLAG,	/* a bool becomes true */
	TEXT,	/* const char *: the argument */
	NUMBER, /* uint64_t */
	BYTES,	/* uint64_t */
	TIME,	/* uint64_t, in nanoseconds */
};

#define TO(member) .offset = offsetof(struct report_opts, member)

static const struct taker {
	int option;
	enum kind kind;
	size_t offset;						/* in struct report_opts */
	int (*take)(struct report_opts *opts, const char *arg); /* in place of both; NULL: none */
} takers[] = {
	{'h', FLAG, TO(help)},
	{'j', .take = take_jobs},
	{'n', .take = take_top},
	{'o', TEXT, TO(output)},
	{'q', FLAG, TO(quiet)},
	{OPT_ADDR, .take = take_addr},
	{OPT_ADDRESSES, FLAG, TO(view.addresses)},
	{OPT_AT, .take = take_at},
	{OPT_BETWEEN, .take = take_between},
	{OPT_BY, .take = take_by},
	{OPT_COLOR, .take = take_color},
	{OPT_COST, .take = take_cost},
	{OPT_DEBUGINFOD, FLAG, TO(debuginfod)},
	{OPT_DEBUG_DIR, .take = take_debug_dir},
	{OPT_DIFF, TEXT, TO(before)},
	{OPT_DUMP, .take = take_dump},
	{OPT_FAIL_ON_LEAK, .take = take_fail_on_leak},
	{OPT_FLAT, .take = take_flat},
	{OPT_FOLDED, .take = take_folded},
	{OPT_FORMAT, .take = take_format},
	{OPT_FUNCTION, .take = take_function},
	{OPT_GROWTH, FLAG, TO(growth)},
	{OPT_INLINE, FLAG, TO(view.inlined)},
	{OPT_INVERTED, FLAG, TO(view.inverted)},
	{OPT_LINES, .take = take_lines},
	{OPT_MAX_MEMORY, .take = take_max_memory},
	{OPT_MIN_BLOCKS, NUMBER, TO(view.sieve.min_blocks)},
	{OPT_MIN_BYTES, BYTES, TO(view.sieve.min_bytes)},
	{OPT_MODULE, TEXT, TO(view.sieve.module)},
	{OPT_NO_DEMANGLE, FLAG, TO(no_demangle)},
	{OPT_NO_EMBEDDED, FLAG, TO(no_embedded)},
	{OPT_NO_PAGER, FLAG, TO(no_pager)},
	{OPT_OLDER, TIME, TO(choice.older_ns)},
	{OPT_PID, .take = take_pid},
	{OPT_STRICT, FLAG, TO(strict)},
	{OPT_SUPPRESSIONS, TEXT, TO(suppressions)},
	{OPT_SYMFS, .take = take_symfs},
	{OPT_TEMPORARY, .take = take_temporary},
	{OPT_THREAD, TEXT, TO(choice.thread)},
	{OPT_TIMELINE, FLAG, TO(timeline)},
};

static int set(struct report_opts *opts, const struct taker *taker, const char *arg)
{
	void *to = (char *)opts + taker->offset;

	switch (taker->kind) {
	case FLAG:
		*(bool *)to = true;
		return 0;
	case TEXT:
		*(const char **)to = arg;
		return 0;
	case NUMBER:
		return check(value_number(arg, to), taker->option, arg, "a number");
	case BYTES:
		return check(value_bytes(arg, to), taker->option, arg, A_SIZE);
	default:
		return check(value_time(arg, to), taker->option, arg, A_TIME);
	}
}

int option_apply(struct report_opts *opts, int option, const char *arg)
{
	for (size_t i = 0; i < sizeof(takers) / sizeof(*takers); i++)
		if (takers[i].option == option)
			return takers[i].take ? takers[i].take(opts, arg)
					      : set(opts, &takers[i], arg);
	assert(!"an option is in option_table.c and not in the table above");
	return -EINVAL;
}
