/* switch.c - see switch.h */
#include "record/switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"
#include "format/cache.h"
#include "mleak.h"
#include "record/base/clock.h"

/* Nanoseconds from one failed attempt to the next, but for a signal. */
#define RETRY_NS 60000000000u

/* A trace that was ended: by its name in its folder, and which file it is. */
struct switch_kept {
	int dir;
	char name[NAME_MAX + 1];
	struct stat st; /* as it was left */
};

bool switch_is_due(const struct switcher *sw, uint64_t bytes, uint64_t now_ns)
{
	if (!sw->opts->on)
		return false;
	if (sw->due || now_ns < sw->retry_ns)
		return sw->due;
	return (sw->opts->bytes && bytes >= sw->opts->bytes) ||
	       (sw->next_ns && now_ns >= sw->next_ns);
}

/* Remove the file, if it is still the one that was written. */
static void remove_trace(const struct switch_kept *k)
{
	struct stat st;

	/* the number of a file that was removed may be another's */
	if (!fstatat(k->dir, k->name, &st, AT_SYMLINK_NOFOLLOW) && st.st_dev == k->st.st_dev &&
	    st.st_ino == k->st.st_ino && st.st_size == k->st.st_size &&
	    !memcmp(&st.st_mtim, &k->st.st_mtim, sizeof(st.st_mtim)) &&
	    !unlinkat(k->dir, k->name, 0))
		mlk_cache_remove(k->dir, k->name);
	close(k->dir);
}

/* Keep in mind the trace that ends, and remove the oldest if there are too many with the next. */
static void note_trace(struct switcher *sw)
{
	const struct mlk_place *place = &sw->out->place;
	struct switch_kept *k;
	struct stat st;

	if (!sw->opts->keep || fstat(place->fd, &st) ||
	    grow_array(&sw->kept, sw->nr_kept, &sw->room, sizeof(*sw->kept)))
		return;
	k = &sw->kept[sw->nr_kept];
	*k = (struct switch_kept){.st = st};
	memcpy(k->name, place->name, sizeof(k->name));
	k->dir = fcntl(place->dir, F_DUPFD_CLOEXEC, 0);
	if (k->dir < 0)
		return;
	sw->nr_kept++;
	while (sw->nr_kept + 1 > sw->opts->keep && sw->nr_kept) {
		remove_trace(&sw->kept[0]);
		memmove(sw->kept, sw->kept + 1, --sw->nr_kept * sizeof(*sw->kept));
	}
}

/* No other trace can be made.  The next attempt is with another number: what has this name may stay
 * for good. */
static void put_off(struct switcher *sw)
{
	if (!sw->failures++)
		log_warn("no other trace is begun: all goes to '%s', until the next can be made",
			 sw->out->path);
	sw->retry_ns = clock_now_ns() + RETRY_NS;
	/* the time is over all the same */
	sw->next_ns = sw->opts->time_ns ? sw->retry_ns : 0;
}

/* The trace that was written is whole: say so, and have @next in its place. */
static void leave_trace(struct switcher *sw, struct output *next, uint64_t bytes)
{
	if (!output_check(sw->out, bytes)) {
		/* with --keep it will not be there for long */
		output_tell(sw->out, bytes, !sw->opts->keep);
		note_trace(sw);
	}
	output_close(sw->out);
	output_move(sw->out, next);
}

enum mlk_end switch_reason(const struct switcher *sw, uint64_t now_ns)
{
	if (sw->due)
		return MLK_END_SIGNAL;
	return sw->next_ns && now_ns >= sw->next_ns ? MLK_END_DURATION : MLK_END_SIZE;
}

void switch_now(struct switcher *sw, enum mlk_end reason)
{
	struct output *next = calloc(1, sizeof(*next));
	uint64_t bytes;
	int err = next ? 0 : -ENOMEM;

	sw->due = false;
	sw->next_ns = sw->opts->time_ns ? clock_now_ns() + sw->opts->time_ns : 0;
	if (!err) {
		next->number = sw->out->number + 1 + sw->failures;
		err = output_open(next, sw->name, sw->pid);
	}
	if (!err && (err = output_take(next)) != 0)
		output_close(next);
	if (err) {
		put_off(sw);
		free(next);
		return;
	}
	sw->failures = 0;
	sw->retry_ns = 0;
	if (sw->writer.end(sw->writer.ctx, reason, &bytes)) {
		output_close(next);
	} else {
		leave_trace(sw, next, bytes);
		sw->writer.begin(sw->writer.ctx, sw->out->fd);
	}
	free(next);
}

void switch_release(struct switcher *sw)
{
	for (size_t i = 0; i < sw->nr_kept; i++)
		close(sw->kept[i].dir);
	free(sw->kept);
	sw->kept = NULL;
	sw->nr_kept = 0;
}
