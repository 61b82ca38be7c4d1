/* kernel_trace.c - see kernel_trace.h */
#include "record/kernel_trace.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/kernel/joined_stack.h"

static void add_option(char *text, size_t room, const char *option, const char *value)
{
	size_t len = strlen(text);

	if (value)
		snprintf(text + len, room - len, "%s%s%s", option, value[0] ? " " : "", value);
}

/* How the blocks are seen, and the options that chose them: neither has a place of its own in the
 * trace. */
static void describe(const struct kernel_opts *o, char *text, size_t room)
{
	char older[32];

	snprintf(text, room, "BPF on the kernel's tracepoints, %s",
		 o->probes.all_events ? "all events"
				      : "blocks that lived for a look each 5 seconds");
	snprintf(older, sizeof(older), "%gs", (double)o->older_ns / 1e9);
	add_option(text, room, ", --percpu", o->probes.percpu ? "" : NULL);
	add_option(text, room, ", --user-stacks", o->probes.user_stacks ? "" : NULL);
	add_option(text, room, ", --older", o->older_ns ? older : NULL);
	add_option(text, room, ", --comm", o->probes.comm);
	add_option(text, room, ", --cgroup", o->cgroup);
	add_option(text, room, ", --cache", o->cache);
}

int kernel_trace_open(struct kernel_recording *r, int fd, uint64_t start_ns)
{
	char how[PATH_MAX + 256];
	struct utsname u;
	struct mlk_meta meta = {.command = "the kernel",
				.exe = "",
				.comm = "kernel",
				.hostname = u.nodename,
				.kernel = u.release,
				.machine = u.machine,
				.recorder = "mleak " MLEAK_VERSION,
				.backend = how,
				.tgid = KERNEL_TGID,
				.of_kernel = 1,
				.stack_limit = r->opts->probes.user_stacks
						       ? JOINED_STACK_MOST
						       : KMEM_STACK_DEPTH * sizeof(uint64_t),
				.stack_mode = MLK_STACK_RAW,
				.sample_every = r->opts->probes.sample_every,
				.min_size = r->opts->probes.min_size,
				.max_size = r->opts->probes.max_size};
	struct mlk_thread kernel = {.tgid = KERNEL_TGID, .tid = 0, .name = "kernel"};
	int err;

	uname(&u);
	describe(r->opts, how, sizeof(how));
	meta.start_ns = r->start_ns = start_ns;
	meta.realtime_ns = clock_ns(CLOCK_REALTIME) - (clock_now_ns() - start_ns);
	err = mlk_writer_open(&r->writer, fd, &meta, r->opts->zstd_level);
	if (!err)
		err = mlk_writer_threads(r->writer, &kernel, 1);
	/* So that a recording that is killed has its stacks, if without names.  Who reads it as it
	 * is written needs all names that there may be. */
	if (!err)
		err = kernel_stacks_write(r->stacks, r->writer,
					  r->opts->output.told < 0 ? KERNEL_STACKS_NO_NAMES
								   : KERNEL_STACKS_ALL,
					  r->start_ns);
	return err;
}

/* Of @all the losses those that are not among @before. */
static void leave_own(struct mlk_losses *all, const struct mlk_losses *before)
{
	for (int i = 0; i < MLK_LOSS_NR; i++)
		all->count[i] -= before->count[i];
	for (int i = 0; i < MLK_SKIP_NR; i++) {
		all->skipped[i] -= before->skipped[i];
		all->skipped_bytes[i] -= before->skipped_bytes[i];
	}
}

int kernel_trace_note_losses(struct kernel_recording *r)
{
	const struct kernel_events_sums *sums = kernel_events_sums(r->events);
	const uint64_t *c = r->counts;
	struct mlk_losses losses = {.first_ns = r->losses_ns ? r->losses_ns : r->start_ns};
	int err = kmem_probes_counts(r->probes, r->counts, &r->missed_allocs, &r->missed_frees);

	if (err)
		return err;
	losses.last_ns = r->losses_ns = clock_now_ns();
	losses.count[MLK_LOST_ALLOC] = c[KMEM_LOST_RING_ALLOC] + r->missed_allocs;
	losses.count[MLK_LOST_FREE] = c[KMEM_LOST_FREES] + c[KMEM_LOST_RING] + r->missed_frees;
	losses.count[MLK_LOST_STATE] = c[KMEM_LOST_FULL];
	losses.count[MLK_LOST_USER] = c[KMEM_LOST_USER] + c[KMEM_UNREAD_USER] + sums->gone_users +
				      sums->cut_users + sums->other_users;
	losses.count[MLK_LOST_MAPS] = sums->too_large;
	losses.count[MLK_LOST_MODULE] = sums->unreadable;
	losses.skipped[MLK_SKIPPED_SIZE] = c[KMEM_FILTERED] + sums->filtered;
	losses.skipped_bytes[MLK_SKIPPED_SIZE] = c[KMEM_FILTERED_BYTES] + sums->filtered_bytes;
	losses.skipped[MLK_SKIPPED_SAMPLE] = c[KMEM_UNSAMPLED];
	losses.skipped_bytes[MLK_SKIPPED_SAMPLE] = c[KMEM_UNSAMPLED_BYTES];
	losses.skipped[MLK_SKIPPED_FREE] = c[KMEM_OLD_FREES];
	losses.skipped[MLK_SKIPPED_OWN] = c[KMEM_OWN];
	losses.skipped_bytes[MLK_SKIPPED_OWN] = c[KMEM_OWN_BYTES];
	losses.skipped[MLK_SKIPPED_SLAB] = sums->slab_pages;
	losses.skipped_bytes[MLK_SKIPPED_SLAB] = sums->slab_bytes;
	if (!r->opts->probes.all_events) {
		losses.skipped[MLK_SKIPPED_SHORT] = c[KMEM_SHORT];
		losses.skipped_bytes[MLK_SKIPPED_SHORT] = c[KMEM_SHORT_BYTES];
	}
	r->lost = losses;
	leave_own(&losses, &r->before);
	mlk_writer_set_losses(r->writer, &losses);
	return 0;
}

int kernel_trace_look(struct kernel_recording *r)
{
	int err = kernel_events_look(r->events);

	if (!err)
		err = kernel_trace_note_losses(r);
	return err ? err : mlk_writer_flush(r->writer);
}

static int end_trace(void *ctx, enum mlk_end reason, uint64_t *bytes)
{
	struct kernel_recording *r = ctx;
	int err = kernel_events_look_at_all(r->events);

	if (!err)
		err = kernel_trace_note_losses(r);
	if (!err)
		err = kernel_memory_finish(&r->memory, r->writer);
	if (!err)
		err = kernel_stacks_write(r->stacks, r->writer, KERNEL_STACKS_USED, r->start_ns);
	if (!err)
		err = mlk_writer_finish(r->writer, reason, kernel_events_written_ns(r->events));
	*bytes = mlk_writer_bytes(r->writer);
	r->before = r->lost;
	r->err = err;
	return err;
}

static void begin_trace(void *ctx, int fd)
{
	struct kernel_recording *r = ctx;
	int err;

	mlk_writer_free(r->writer); /* its thread is done with the file */
	r->writer = NULL;
	r->losses_ns = r->memory.due_ns = 0;
	err = kernel_trace_open(r, fd, kernel_events_written_ns(r->events));
	if (!err)
		err = kernel_events_begin_trace(r->events, r->writer);
	kernel_origins_begin_trace(r->origins, r->writer);
	r->err = err;
}

struct switch_writer kernel_trace_writer(struct kernel_recording *r)
{
	return (struct switch_writer){r, end_trace, begin_trace};
}
