/* cmd_info.c - `mleak info`: facts about a trace, without a replay */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "mleak.h"
#include "report/base/event_names.h"
#include "report/base/text.h"
#include "report/context/sampling_text.h"
#include "report/events_command.h"
#include "report/info_heap.h"
#include "report/info_interpreters.h"
#include "report/info_kernel.h"
#include "report/info_memory.h"
#include "report/trace/lifetimes.h"
#include "report/trace/memory_samples.h"
#include "report/trace/thread_names.h"
#include "report/trace/trace_marks.h"

static void put_line(const char *name, const char *text)
{
	if (!text[0])
		return;
	printf("%-12s ", name);
	text_print(stdout, text);
	putchar('\n');
}

static void put_number(const char *name, uint64_t number)
{
	char buf[TEXT_NUMBER_MAX];

	printf("%-12s %s\n", name, text_number(buf, number));
}

static void put_origin(const struct mlk_reader *trace)
{
	const struct mlk_meta *meta = mlk_reader_meta(trace);
	struct mlk_header header = mlk_reader_header(trace);
	const char *mode = stack_mode_name((unsigned int)meta->stack_mode);
	time_t seconds = (time_t)(meta->realtime_ns / 1000000000);
	char when[64] = "";
	struct tm utc;

	if (gmtime_r(&seconds, &utc))
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &utc);
	printf("%-12s %u.%u\n", "format", header.major, header.minor);
	put_number("bytes", mlk_reader_size(trace));
	put_line("recorded", when);
	put_line("by", meta->recorder);
	put_line("with", meta->backend);
	put_line(meta->of_kernel ? "of" : "command", meta->command);
	put_line("exe", meta->exe);
	put_line("host", meta->hostname);
	put_line("kernel", meta->kernel);
	put_line("machine", meta->machine);
	if (meta->of_kernel)
		return;
	printf("%-12s %" PRIu64 "\n", "pid", meta->tgid);
	put_line("from", meta->whole_life ? "the program's start" : "an attach to it");
	put_line("stacks", meta->dropped ? "dropped" /* mleak unwind --drop-raw */
			   : mode	 ? mode	     /* --raw-stack, --redact, or neither */
					 : "unknown");
}

/* The options of the recording that the trace knows of, by their names. */
static void put_options(const struct mlk_meta *meta)
{
	const struct {
		const char *name;
		uint64_t bytes;
	} sizes[] = {
		{"min-size", meta->min_size},
		{"max-size", meta->max_size},
		{"trigger", meta->trigger_bytes},
		{"trigger-process", meta->trigger_process},
		{"trigger-site", meta->trigger_site},
		{"ring-size", meta->ring_size},
		{"stack-size", meta->of_kernel ? 0 : meta->stack_limit},
	};
	char how[SAMPLE_TEXT_MAX];

	if (print_sampling_rate(how, meta))
		put_line("sample", how);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i].bytes)
			put_number(sizes[i].name, sizes[i].bytes);
	if (meta->of_kernel)
		put_number("frames", meta->stack_limit / sizeof(uint64_t));
	if (meta->guarded)
		put_line("guard", "yes");
	if (meta->dropped == MLK_DROPPED_ALL && !meta->guarded)
		put_line("addresses", "dropped"); /* blocks have numbers */
}

/* Has `mleak unwind` been here? */
static bool is_unwound(struct mlk_reader *trace)
{
	const struct mlk_entry *entries;
	size_t nr;
	bool unwound = mlk_reader_meta(trace)->dropped == MLK_DROPPED_ALL;

	if (unwound || mlk_reader_list(trace, &entries, &nr))
		return unwound;
	for (size_t i = 0; i < nr; i++)
		unwound |= entries[i].records == MLK_RECORD_UNWOUND;
	return unwound;
}

static void put_id(const struct mlk_id *id)
{
	if (id->len < 2 || id->bytes[0] != MLK_ID_BUILD_ID)
		printf("%-40s", "no build-id");
	else
		for (int i = 1; i < id->len; i++)
			printf("%02x", id->bytes[i]);
}

/* A module is told once, by the first piece of its image. */
static int put_record(void *arg, const struct mlk_record *record)
{
	const struct mlk_meta *meta = arg;
	char buf[TEXT_NUMBER_MAX];

	if (record->type == MLK_RECORD_THREAD) {
		printf("%-12s ", "thread");
		if (!meta->of_kernel) /* there, each is of process 0 */
			printf("%" PRIu32 "/", record->thread.tgid);
		printf("%" PRIu32 " ", record->thread.tid);
		text_print(stdout, record->thread.name);
		putchar('\n');
	} else if (record->type == MLK_RECORD_MODULE && !record->module.offset) {
		printf("%-12s ", "module");
		put_id(&record->module.id);
		printf(" %12s ", text_number(buf, record->module.image_len));
		text_print(stdout, record->module.path);
		putchar('\n');
	}
	return 0;
}

static void put_skipped(uint64_t nr, enum mlk_skip kind, bool of_kernel)
{
	if (kind == MLK_SKIPPED_SIZE && of_kernel)
		printf("%-12s %" PRIu64 " allocation%s that --cache, --comm, --cgroup or a size "
		       "left out\n",
		       "skipped", nr, nr == 1 ? "" : "s");
	else
		printf("%-12s %" PRIu64 " %s\n", "skipped", nr, mlk_skip_text(kind, nr));
}

static void put_condition(const struct mlk_reader *trace)
{
	static const char *const reasons[] = {
		[MLK_END_EXITED] = "the target ended",
		[MLK_END_SIGNAL] = "it was stopped",
		[MLK_END_DURATION] = "the time was over",
		[MLK_END_ERROR] = "it could not be written",
		[MLK_END_SIZE] = "it was full",
		[MLK_END_COPIED] = "it was copied while it was recorded",
	};
	const struct mlk_condition *condition = mlk_reader_condition(trace);
	uint64_t start_ns = mlk_reader_meta(trace)->start_ns;
	bool of_kernel = mlk_reader_meta(trace)->of_kernel;

	if (condition->end_ns > start_ns)
		printf("%-12s %.3f\n", "seconds", (double)(condition->end_ns - start_ns) / 1e9);
	if (!condition->ended)
		put_line("ended", mlk_reader_is_growing(trace)
					  ? "not yet: it is still being written"
					  : "no: killed, or cut");
	else if (condition->reason < sizeof(reasons) / sizeof(*reasons) &&
		 reasons[condition->reason])
		put_line("ended", reasons[condition->reason]);
	if (condition->chunks_lost)
		put_number("chunks lost", condition->chunks_lost);
	if (condition->bytes_skipped)
		put_number("skipped", condition->bytes_skipped);
	for (int kind = 0; kind < MLK_LOSS_NR; kind++)
		if (condition->losses.count[kind])
			printf("%-12s %" PRIu64 " %s\n", "lost", condition->losses.count[kind],
			       mlk_loss_text((enum mlk_loss)kind, condition->losses.count[kind]));
	for (int kind = 0; kind < MLK_SKIP_NR; kind++)
		if (condition->losses.skipped[kind])
			put_skipped(condition->losses.skipped[kind], kind, of_kernel);
}

/* Give all records that were requested to @take. */
static int take_all(struct mlk_reader *trace,
		    int (*take)(void *arg, const struct mlk_record *record), void *arg)
{
	struct mlk_record record;
	int more;

	while ((more = mlk_reader_next(trace, &record)) > 0) {
		int err = take(arg, &record);

		if (err)
			return err;
	}
	return more;
}

/* Give all records of these types to @take. */
static int each(struct mlk_reader *trace, unsigned int types,
		int (*take)(void *arg, const struct mlk_record *record), void *arg)
{
	mlk_reader_rewind(trace, types);
	return take_all(trace, take, arg);
}

/* What the events and threads are, all in all. */
struct content {
	uint64_t counts[MLK_KIND_NR];
	struct lifetimes *processes;
	struct thread_names *names;
	struct memory_samples memory;
	struct trace_marks marks;
	struct info_kernel kernel;
	struct interpreted interpreters;
	uint64_t regions, most_regions, regions_left; /* snapshots of all mappings; of one */
};

static void note_regions(struct content *content, const struct mlk_regions *regions)
{
	uint64_t nr = regions->nr + regions->left_out;

	content->regions++;
	if (nr > content->most_regions)
		content->most_regions = nr;
	if (regions->left_out > content->regions_left)
		content->regions_left = regions->left_out;
}

static int note_content(void *arg, const struct mlk_record *record)
{
	struct content *content = arg;
	const struct mlk_thread *thread = &record->thread;

	if (record->type & (MLK_RECORD_HEAD | MLK_RECORD_EVENT) && record->event.kind < MLK_KIND_NR)
		content->counts[record->event.kind]++;
	if (record->type == MLK_RECORD_THREAD) {
		int err =
			thread_names_note(content->names, thread->tgid, thread->tid, thread->name);

		if (err)
			return err;
	}
	if (record->type == MLK_RECORD_MEMORY)
		return memory_samples_note(&content->memory, &record->memory);
	if (record->type == MLK_RECORD_INTERPRETER)
		return interpreted_note(&content->interpreters, &record->interpreter);
	if (record->type == MLK_RECORD_REGIONS)
		note_regions(content, &record->regions);
	if (record->type == MLK_RECORD_MARK)
		return trace_marks_note(&content->marks, &record->mark);
	return lifetimes_note(content->processes, record);
}

static int note_kernel(void *arg, const struct mlk_record *record)
{
	struct content *content = arg;
	int err = info_kernel_note(&content->kernel, record);

	return err ? err : note_content(content, record);
}

static int put_kernel(const struct content *content)
{
	struct info_sums sums;
	int err = info_kernel_sum(&content->kernel, &sums);

	if (err)
		return err;
	put_number("stacks", sums.stacks);
	put_number("caches", sums.caches);
	put_number("processes", sums.processes);
	put_number("cgroups", sums.cgroups);
	return 0;
}

static void put_since(uint64_t ns, uint64_t start_ns)
{
	if (ns == LIFETIMES_UNKNOWN)
		fputs(" -", stdout);
	else
		printf(" %.3f", ns > start_ns ? (double)(ns - start_ns) / 1e9 : 0);
}

static void put_processes(const struct content *content, uint64_t start_ns)
{
	for (size_t i = 0; i < content->processes->nr; i++) {
		struct lifetime process = content->processes->all[i];

		printf("%-12s %" PRIu32, "process", process.tgid);
		put_since(process.from_ns, start_ns);
		put_since(process.to_ns, start_ns);
		putchar(' ');
		text_print(stdout, thread_names_get(content->names, process.tgid, process.tgid));
		putchar('\n');
	}
}

static void put_regions(const struct content *content)
{
	char snapshots[TEXT_NUMBER_MAX], most[TEXT_NUMBER_MAX], left[TEXT_NUMBER_MAX];

	if (!content->regions)
		return;
	printf("%-12s %s snapshot%s, of at most %s mapping%s", "mappings",
	       text_number(snapshots, content->regions), content->regions == 1 ? "" : "s",
	       text_number(most, content->most_regions), content->most_regions == 1 ? "" : "s");
	if (content->regions_left)
		printf(", %s left out", text_number(left, content->regions_left));
	putchar('\n');
}

/* In their order: their numbers are those of mark:N. */
static void put_marks(const struct trace_marks *marks, uint64_t start_ns)
{
	for (size_t i = 0; i < marks->nr; i++) {
		printf("%-12s %zu", "mark", i + 1);
		put_since(marks->all[i].time_ns, start_ns);
		printf(" %s ", trace_mark_kind(&marks->all[i]));
		text_print(stdout, marks->all[i].text);
		putchar('\n');
	}
	if (marks->left_out)
		put_number("marks left", marks->left_out);
}

/* Read all that is told at first, and count what is damaged as a report does: in all chunks, but
 * for the stacks of `mleak unwind`, which can be made anew. */
static int note_all(struct mlk_reader *trace, struct content *content)
{
	const unsigned int types = MLK_RECORD_THREAD | MLK_RECORD_MEMORY | MLK_RECORD_MARK;
	bool of_kernel = mlk_reader_meta(trace)->of_kernel;
	int err = lifetimes_new(&content->processes, mlk_reader_meta(trace));

	if (!err)
		err = thread_names_new(&content->names);
	if (err)
		return err;
	mlk_reader_rewind(trace, types | (of_kernel ? MLK_RECORD_EVENT | MLK_RECORD_ORIGIN
						    : MLK_RECORD_HEAD | MLK_RECORD_REGIONS |
							      MLK_RECORD_INTERPRETER));
	mlk_reader_check_others(trace, MLK_RECORD_UNWOUND);
	return take_all(trace, of_kernel ? note_kernel : note_content, content);
}

static int put_heap(void *arg, const struct mlk_record *record)
{
	info_heap_put(arg, record);
	return 0;
}

static int info(struct mlk_reader *trace, bool follow)
{
	struct mlk_meta meta = *mlk_reader_meta(trace);
	struct content content = {0};
	struct info_heap heap = {{0}, {0}};
	int err = note_all(trace, &content);

	(void)follow;
	if (!err) {
		put_origin(trace);
		put_options(&meta);
		if (is_unwound(trace))
			put_line("unwound", "yes");
		put_condition(trace);
		put_number("allocations", content.counts[MLK_ALLOC]);
		put_number("frees", content.counts[MLK_FREE] + content.counts[MLK_RELEASE] +
					    content.counts[MLK_UNMAP]);
		if (content.counts[MLK_PAGES])
			put_number("page events", content.counts[MLK_PAGES]);
		if (meta.of_kernel)
			err = put_kernel(&content);
		else
			put_processes(&content, meta.start_ns);
		info_interpreters_put(&content.interpreters);
		info_memory_put(&content.memory);
		put_regions(&content);
		put_marks(&content.marks, meta.start_ns);
	}
	if (!err)
		err = each(trace, MLK_RECORD_MODULE | MLK_RECORD_THREAD, put_record, &meta);
	if (!err)
		err = each(trace, MLK_RECORD_HEAP, put_heap, &heap);
	info_kernel_release(&content.kernel);
	interpreted_release(&content.interpreters);
	memory_samples_release(&content.memory);
	trace_marks_release(&content.marks);
	thread_names_free(content.names);
	lifetimes_free(content.processes);
	return err;
}

int cmd_info(int argc, char **argv)
{
	return events_command(
		argc, argv,
		&(struct events_command){
			.rows = info_option,
			.help = "usage: mleak info FILE\n\nShows facts about a trace, one per "
				"line, the name of the fact first.\n\n",
			.print = info});
}
