/* filters.c - see filters.h */
#include "record/filter/filters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf/event.h"
#include "cmdline/values.h"
#include "mleak.bpf.skel.h"
#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/proc.h"
#include "record/filter/choices.h"
#include "record/libpreload/ring.h"

#define MAX_BLOCK (1ull << 50)

_Static_assert((int)EVENT_SKIP_SIZE == MLK_SKIPPED_SIZE &&
		       (int)EVENT_SKIP_SAMPLE == MLK_SKIPPED_SAMPLE &&
		       (int)EVENT_SKIP_TRIGGER == MLK_SKIPPED_TRIGGER &&
		       (int)EVENT_SKIP_DELAY == MLK_SKIPPED_DELAY &&
		       (int)EVENT_SKIP_FREE == MLK_SKIPPED_FREE &&
		       (int)EVENT_SKIP_UNKEPT == MLK_SKIPPED_UNKEPT &&
		       (int)EVENT_SKIP_NR == MLK_SKIPPED_CHILD,
	       "the kernel's counts are the trace's");

static int parse_size(const struct option_info *option, const char *text, uint64_t *bytes)
{
	return option_bytes(option, text, 1, MAX_BLOCK, "bytes from 1 on, as 100 or 64K", bytes);
}

/* A number alone counts allocations, one with a unit bytes: 100, 512K, 512KB, 4096B. */
static int parse_sample(struct filter_opts *f, const struct option_info *option, const char *text)
{
	uint64_t value;
	int err = option_bytes(option, text, 1, FILTERS_MAX_MEAN,
			       "100 for one of 100 allocations, or bytes with a unit, as 512K or "
			       "4096B, for one in so many bytes, 1G at most",
			       &value);

	f->sample_every = f->sample_bytes = 0;
	if (!err && value_has_unit(text))
		f->sample_bytes = value;
	else if (!err && value > 1)
		f->sample_every = value;
	return err;
}

static int parse_tid(struct filter_opts *f, const struct option_info *option, const char *text)
{
	uint64_t tid;
	int err = option_number(option, text, 1, INT_MAX,
				"the number of a thread, as 'ps -L' shows it under LWP", &tid);

	if (err)
		return err;
	if (f->nr_tids == FILTERS_MAX_TIDS) {
		log_error("more than %d threads are named: leave --tid out to record all",
			  FILTERS_MAX_TIDS);
		return -EINVAL;
	}
	f->tids[f->nr_tids++] = (uint32_t)tid;
	return 0;
}

int filters_read_trigger(const char *text, enum choice_trigger *trigger, uint64_t *bytes)
{
	static const char *const kinds[TRIGGER_NR] = {"thread:", "process:", "site:"};

	*trigger = TRIGGER_THREAD;
	for (int i = 0; i < TRIGGER_NR; i++)
		if (!strncmp(text, kinds[i], strlen(kinds[i]))) {
			*trigger = (enum choice_trigger)i;
			text += strlen(kinds[i]);
			break;
		}
	return value_bytes(text, bytes) || !*bytes || *bytes > MAX_BLOCK ? -EINVAL : 0;
}

static int parse_trigger(struct filter_opts *f, const struct option_info *option, const char *text)
{
	uint64_t *const kinds[TRIGGER_NR] = {&f->trigger_bytes, &f->trigger_process,
					     &f->trigger_site};
	enum choice_trigger trigger;
	uint64_t bytes;

	if (filters_read_trigger(text, &trigger, &bytes))
		return option_refuse(
			option, "bytes from 1 on, as 10M for a thread, process:10M or site:10M",
			text);
	*kinds[trigger] = bytes;
	return 0;
}

static int parse_choose(struct filter_opts *f, const struct option_info *option, const char *text)
{
	int word = option_word(option, text);

	f->choose = word ? CHOOSE_COUNTED : CHOOSE_RECORDED;
	return word < 0 ? word : 0;
}

int filters_parse(struct filter_opts *f, const struct option_info *option, const char *text)
{
	switch (option->key) {
	case 'z':
		return parse_size(option, text, &f->min_size);
	case 'Z':
		return parse_size(option, text, &f->max_size);
	case 's':
		return parse_sample(f, option, text);
	case 'D':
		return option_time(option, text, 1, &f->delay_ns);
	case FILTER_TID:
		return parse_tid(f, option, text);
	case FILTER_TRIGGER:
		return parse_trigger(f, option, text);
	case FILTER_CHOOSE:
		return parse_choose(f, option, text);
	default:
		return -EINVAL;
	}
}

static bool any_trigger(const struct filter_opts *f)
{
	return f->trigger_bytes || f->trigger_process || f->trigger_site;
}

static bool is_thread_of(uint32_t tid, const pid_t *pids, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		if (proc_has_thread(pids[i], (pid_t)tid))
			return true;
	return false;
}

int filters_check(const struct filter_opts *f, const pid_t *pids, size_t nr)
{
	if (f->max_size && f->min_size > f->max_size) {
		log_error("no block has at least %llu and at most %llu bytes: see -z and -Z",
			  (unsigned long long)f->min_size, (unsigned long long)f->max_size);
		return -EINVAL;
	}
	if (f->nr_tids && !nr) {
		log_error("--tid needs -p PID: the threads of a command have no numbers before it "
			  "runs");
		return -EINVAL;
	}
	for (size_t i = 0; i < f->nr_tids; i++) {
		if (is_thread_of(f->tids[i], pids, nr))
			continue;
		log_error("process %d%s has no thread %u: 'ps -L -p %d' shows them under LWP",
			  (int)pids[0], nr > 1 ? ", as the others of -p," : "", f->tids[i],
			  (int)pids[0]);
		return -EINVAL;
	}
	return 0;
}

bool filters_by_thread(const struct filter_opts *f)
{
	return f->nr_tids || any_trigger(f) || f->choose;
}

bool filters_any(const struct filter_opts *f)
{
	return f->min_size || f->max_size || f->sample_every || f->sample_bytes || f->delay_ns ||
	       filters_by_thread(f);
}

void filters_describe(const struct filter_opts *f, struct mlk_meta *meta)
{
	meta->sample_every = f->sample_every;
	meta->sample_bytes = f->sample_bytes;
	meta->min_size = f->min_size;
	meta->max_size = f->max_size;
	meta->trigger_bytes = f->trigger_bytes;
	meta->trigger_process = f->trigger_process;
	meta->trigger_site = f->trigger_site;
}

int filters_check_preload(const struct filter_opts *f, bool say)
{
	if (!f->nr_tids)
		return 0;
	if (say)
		log_error("--backend preload cannot choose threads by their numbers: leave --tid "
			  "out and choose them by --choose and 'mleak ctl', or use eBPF as root");
	return -EINVAL;
}

static void set_digits(const struct filter_opts *f, uint32_t *digits, size_t nr)
{
	if (f->sample_bytes)
		filters_digits((double)f->sample_bytes, digits, nr);
	else if (f->sample_every)
		filters_digits(filters_mean_of(f->sample_every), digits, nr);
}

void filters_set_preload(const struct filter_opts *f, struct preload_filter *set)
{
	*set = (struct preload_filter){
		.on = filters_any(f),
		.samples = f->sample_every || f->sample_bytes,
		.min_size = f->min_size,
		.max_size = f->max_size ? f->max_size : UINT64_MAX,
		.by_bytes = f->sample_bytes != 0,
		.by_thread = filters_by_thread(f),
		.sum_processes = f->trigger_process != 0,
		.sum_sites = f->trigger_site != 0,
	};
	set_digits(f, set->digits, PRELOAD_NR_DIGITS);
}

static int64_t preload_trigger(uint64_t bytes)
{
	return (int64_t)(bytes ? bytes : TRIGGER_NEVER);
}

struct preload_triggers filters_preload_triggers(const struct filter_opts *f)
{
	return (struct preload_triggers){preload_trigger(f->trigger_bytes),
					 preload_trigger(f->trigger_process),
					 preload_trigger(f->trigger_site)};
}

double filters_mean_of(uint64_t every)
{
	return -1 / log1p(-1 / (double)every);
}

void filters_digits(double mean, uint32_t *digits, size_t nr)
{
	for (size_t i = 0; i < nr; i++)
		digits[i] = (uint32_t)llround(ldexp(1 / (1 + exp(ldexp(1, (int)i) / mean)), 32));
}

int filters_configure(const struct filter_opts *f, struct mleak_bpf *skel)
{
	struct event_filter set = {
		.min_size = f->min_size,
		.max_size = f->max_size ? f->max_size : UINT64_MAX,
		.sum_processes = f->trigger_process != 0,
		.sum_sites = f->trigger_site != 0,
		.accounts = any_trigger(f) || f->choose,
		.on = filters_any(f),
		.delays = f->delay_ns != 0,
		.by_thread = filters_by_thread(f),
		.samples = f->sample_every || f->sample_bytes,
		.by_bytes = f->sample_bytes != 0,
	};
	const struct {
		struct bpf_map *map;
		bool needed;
	} maps[] = {{skel->maps.filter_blocks, set.on},
		    {skel->maps.filter_skips, set.on},
		    {skel->maps.filter_copies, set.on},
		    {skel->maps.thread_modes, set.by_thread},
		    {skel->maps.thread_accounts, set.accounts},
		    {skel->maps.process_sums, set.sum_processes},
		    {skel->maps.site_sums, set.sum_sites},
		    {skel->maps.process_programs, set.sum_sites}};
	int err = 0;

	set_digits(f, set.digits, EVENT_FILTER_DIGITS);
	memcpy((void *)&skel->rodata->filter, &set, sizeof(set));
	choices_begin(f, skel);
	/* Linux before 6.8 also checks functions that nobody calls, and this one is theirs. */
	if (!set.by_thread)
		err = bpf_map__set_max_entries(skel->maps.process_choices, 1);
	/* A map costs time and memory, even an empty one. */
	for (size_t i = 0; !err && i < sizeof(maps) / sizeof(maps[0]); i++)
		if (!maps[i].needed)
			err = bpf_map__set_autocreate(maps[i].map, false);
	return err;
}

int filters_name_threads(const struct filter_opts *f, struct mleak_bpf *skel)
{
	uint32_t full = EVENT_THREAD_FULL;
	int err = 0;

	for (size_t i = 0; i < f->nr_tids && !err; i++)
		err = bpf_map_update_elem(bpf_map__fd(skel->maps.thread_modes), &f->tids[i], &full,
					  BPF_ANY);
	return err;
}

void filters_begin(const struct filter_opts *f, struct mleak_bpf *skel)
{
	skel->bss->filter_control.begin_ns = clock_now_ns() + f->delay_ns;
}

void filters_count(const struct mleak_bpf *skel, struct mlk_losses *losses)
{
	int fd = bpf_map__fd(skel->maps.filter_skips), nr = libbpf_num_possible_cpus();
	struct event_skips *of_cpu;
	uint32_t only = 0;

	if (fd < 0 || nr < 1)
		return;
	of_cpu = calloc((size_t)nr, sizeof(*of_cpu));
	if (!of_cpu || bpf_map_lookup_elem(fd, &only, of_cpu))
		nr = 0;
	for (int cpu = 0; cpu < nr; cpu++)
		for (int why = 0; why < EVENT_SKIP_NR; why++) {
			losses->skipped[why] += of_cpu[cpu].nr[why];
			losses->skipped_bytes[why] += of_cpu[cpu].bytes[why];
		}
	free(of_cpu);
}

#define BATCH	  4096 /* entries read at once */
#define BATCHES	  16   /* in one call */
#define MAX_VALUE 24   /* bytes; of larger values fewer are read */

/* As bpf/filter.h has it. */
struct block_key {
	uint64_t addr, tgid;
};

/* What was read at once, and the processes that were recorded then. */
struct batch {
	union {
		struct block_key blocks[BATCH];
		uint32_t ids[BATCH]; /* of threads or processes */
	} keys;
	uint8_t values[BATCH * MAX_VALUE];
	uint32_t tgids[EVENT_MAX_TARGETS];
	size_t nr_tgids;
};

static int compare_tgids(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* After a batch was read: a thread that had a block by then is recorded, or has ended. */
static void read_targets(const struct mleak_bpf *skel, struct batch *b)
{
	int fd = bpf_map__fd(skel->maps.targets);
	uint32_t key, *last = NULL;

	b->nr_tgids = 0;
	while (b->nr_tgids < EVENT_MAX_TARGETS && !bpf_map_get_next_key(fd, last, &key)) {
		b->tgids[b->nr_tgids] = key;
		last = &b->tgids[b->nr_tgids++];
	}
	qsort(b->tgids, b->nr_tgids, sizeof(b->tgids[0]), compare_tgids);
}

static bool is_recorded(const struct batch *b, uint64_t tgid)
{
	uint32_t key = (uint32_t)tgid;

	return bsearch(&key, b->tgids, b->nr_tgids, sizeof(key), compare_tgids) != NULL;
}

static bool runs_program(const struct mleak_bpf *skel, uint32_t tgid, uint32_t program)
{
	uint32_t now = 0;

	bpf_map_lookup_elem(bpf_map__fd(skel->maps.process_programs), &tgid, &now);
	return now == program;
}

static bool has_thread_ended(uint32_t tid)
{
	return syscall(SYS_tkill, tid, 0) && errno == ESRCH;
}

/* Does the entry @i that was read of the table @map belong to nobody? */
static bool is_left(const struct mleak_bpf *skel, const struct batch *b, const struct bpf_map *map,
		    uint32_t i)
{
	const uint64_t tgid = b->keys.blocks[i].tgid; /* a site's has the program's number, too */

	if (map == skel->maps.thread_modes)
		return has_thread_ended(b->keys.ids[i]);
	if (map != skel->maps.filter_blocks && map != skel->maps.site_sums)
		return !is_recorded(b, b->keys.ids[i]);
	return !is_recorded(b, tgid) ||
	       (map == skel->maps.site_sums &&
		!runs_program(skel, (uint32_t)tgid, (uint32_t)(tgid >> 32)));
}

/* Returns false at the end of the table @map. */
static bool sweep_batch(const struct mleak_bpf *skel, struct filters_sweep *sweep,
			const struct bpf_map *map, struct batch *b)
{
	const uint32_t room = (uint32_t)(sizeof(b->values) / bpf_map__value_size(map));
	uint32_t nr = room < BATCH ? room : BATCH;
	int fd = bpf_map__fd(map);
	size_t size = bpf_map__key_size(map);
	int err = bpf_map_lookup_batch(fd, sweep->inside ? &sweep->at : NULL, &sweep->at, &b->keys,
				       b->values, &nr, NULL);

	sweep->inside = !err;
	if (err && err != -ENOENT) /* that was the last */
		return false;
	read_targets(skel, b);
	for (uint32_t i = 0; i < nr; i++)
		if (is_left(skel, b, map, i))
			bpf_map_delete_elem(fd, (const char *)&b->keys + i * size);
	return !err;
}

bool filters_sweep(const struct mleak_bpf *skel, struct filters_sweep *sweep)
{
	const struct bpf_map *const tables[FILTERS_SWEEP_TABLES] = {
		skel->maps.filter_blocks, skel->maps.thread_modes,     skel->maps.site_sums,
		skel->maps.process_sums,  skel->maps.process_programs, skel->maps.process_choices,
		skel->maps.filter_copies};
	struct batch *b = malloc(sizeof(*b));

	for (int i = 0; b && i < BATCHES && sweep->table < FILTERS_SWEEP_TABLES; i++) {
		const struct bpf_map *map = tables[sweep->table];

		/* negative: no filter needs it */
		if (bpf_map__fd(map) < 0 || !sweep_batch(skel, sweep, map, b))
			sweep->table++;
	}
	free(b);
	if (b && sweep->table < FILTERS_SWEEP_TABLES)
		return true;
	memset(sweep, 0, sizeof(*sweep));
	return false;
}
