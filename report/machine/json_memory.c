/* json_memory.c - samples of memory; doc/report-json.md says what the members mean */
#include "report/machine/print_json.h"

#include <errno.h>

static const char *const keys[MLK_MEMORY_NR] = {
	[MLK_MEMORY_MAPPED] = "mapped",
	[MLK_MEMORY_RSS] = "rss",
	[MLK_MEMORY_PSS] = "pss",
	[MLK_MEMORY_ANON] = "anonymous",
	[MLK_MEMORY_FILE] = "file",
	[MLK_MEMORY_SHMEM] = "shared",
	[MLK_MEMORY_SWAP] = "swap",
	[MLK_MEMORY_PAGE_TABLES] = "page_tables",
	[MLK_MEMORY_PEAK] = "peak_rss",
	[MLK_MEMORY_LAZY_FREE] = "lazy_free",
	[MLK_MEMORY_HUGE] = "huge",
	[MLK_MEMORY_TOTAL] = "total",
	[MLK_MEMORY_FREE] = "free",
	[MLK_MEMORY_AVAILABLE] = "available",
	[MLK_MEMORY_CACHED] = "cached",
	[MLK_MEMORY_SLAB_RECLAIM] = "slab_reclaimable",
	[MLK_MEMORY_SLAB_KEPT] = "slab_unreclaimable",
	[MLK_MEMORY_KERNEL_STACKS] = "kernel_stacks",
	[MLK_MEMORY_VMALLOC] = "vmalloc",
	[MLK_MEMORY_PERCPU] = "percpu",
};

static void put_sample(struct json *json, const struct report_data *export, const char *key,
		       const struct mlk_memory *sample)
{
	json_open(json, key, '{');
	json_number(json, "at_ns", report_data_since_start(export, sample->time_ns));
	for (int i = 0; i < MLK_MEMORY_NR; i++)
		if (sample->known >> i & 1)
			json_number(json, keys[i], sample->value[i]);
	if (!sample->known && sample->error == ESRCH)
		json_bool(json, "exited", true);
	else if (!sample->known)
		json_number(json, "error", sample->error);
	json_close(json, '}');
}

static void put_process(struct json *json, const struct report_data *export,
			const struct memory_process *process, bool each)
{
	const struct mlk_memory *first = NULL, *last = NULL;

	for (size_t i = 0; i < process->nr; i++) {
		if (!process->all[i].known)
			continue;
		first = first ? first : &process->all[i];
		last = &process->all[i];
	}
	json_open(json, NULL, '{');
	json_number(json, "pid", process->tgid);
	json_number(json, "taken", process->taken);
	json_number(json, "failed", process->failed);
	if (first) {
		put_sample(json, export, "first", first);
		put_sample(json, export, "last", last);
	}
	if (each) {
		json_open(json, "samples", '[');
		for (size_t i = 0; i < process->nr; i++)
			put_sample(json, export, NULL, &process->all[i]);
		json_close(json, ']');
	}
	json_close(json, '}');
}

void json_marks(struct json *json, const struct report_data *export)
{
	const struct trace_marks *marks = &export->leaks->marks;

	json_open(json, "marks", '[');
	for (size_t i = 0; i < marks->nr; i++) {
		json_open(json, NULL, '{');
		json_number(json, "at_ns", report_data_since_start(export, marks->all[i].time_ns));
		json_text(json, "kind", trace_mark_kind(&marks->all[i]));
		json_text(json, "text", marks->all[i].text);
		json_close(json, '}');
	}
	json_close(json, ']');
}

void json_memory(struct json *json, const struct report_data *export, const char *key, bool each)
{
	const struct memory_samples *samples = &export->leaks->memory;

	json_open(json, key, '[');
	for (size_t i = 0; i < samples->nr; i++)
		put_process(json, export, &samples->all[i], each);
	json_close(json, ']');
}
