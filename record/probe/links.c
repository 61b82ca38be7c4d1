/* links.c - see links.h */
#include "record/probe/links.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "array.h"
#include "record/privilege/privileges.h"
#include "record/probe/uprobe_multi.h"

struct link_set *links_find(const struct links *l, const struct alloc_object *o)
{
	for (size_t i = 0; i < l->nr; i++)
		if (alloc_object_same(l->v[i].object, o))
			return &l->v[i];
	return NULL;
}

struct link_set *links_add(struct links *l, const struct alloc_object *o)
{
	struct alloc_object *copy;

	if (grow_array(&l->v, l->nr, &l->room, sizeof(*l->v)))
		return NULL;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return NULL;
	*copy = *o;
	copy->path = NULL;
	copy->fd = -1;
	l->v[l->nr] = (struct link_set){.object = copy};
	return &l->v[l->nr++];
}

/* Add the link @fd to @set; it is closed if there is no memory. */
static int keep_link(struct link_set *set, int fd)
{
	if (grow_array(&set->fds, set->nr, &set->room, sizeof(*set->fds))) {
		close(fd);
		return -ENOMEM;
	}
	set->fds[set->nr++] = fd;
	return 0;
}

/* A probe as a perf event of its own, by the uprobe PMU of include/uapi/linux/perf_event.h. */
#define PMU "/sys/bus/event_source/devices/uprobe/"

/* The number after @format ("%d", "config:%d") in the one line of the file @path; negative: none.
 */
static int read_number(const char *path, const char *format)
{
	FILE *f = fopen(path, "re");
	int number = -1;

	if (!f)
		return -1;
	if (fscanf(f, format, &number) != 1)
		number = -1;
	fclose(f);
	return number;
}

/* The event of the one probe of @l on the file @path; @disabled: the breakpoint is there, but
 * nothing is done about it. */
static int open_event(const struct helper_link *l, const char *path, bool disabled)
{
	struct perf_event_attr attr = {.size = sizeof(attr), .disabled = disabled};
	int type = read_number(PMU "type", "%d");
	int bit = read_number(PMU "format/retprobe", "config:%d");
	long fd;

	if (type < 0 || bit < 0)
		return -EOPNOTSUPP;
	attr.type = (uint32_t)type;
	attr.config = l->is_return ? 1ull << bit : 0;
	attr.config1 = (uintptr_t)path;
	attr.config2 = l->offsets[0];
	fd = syscall(SYS_perf_event_open, &attr, l->of.task, -1, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : (int)fd;
}

/* Put the program of @l on its one probe.  Returns the link's descriptor or -errno. */
static int link_perf(const struct helper_link *l, const char *path)
{
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = l->cookies[0]);
	int event = open_event(l, path, false), link;

	if (event < 0)
		return event;
	link = bpf_link_create(l->program, event, BPF_PERF_EVENT, &opts);
	if (link >= 0 && ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		int err = -errno;

		close(link);
		link = err;
	}
	close(event); /* the link holds it */
	return link;
}

int links_make(const struct helper_link *l)
{
	char path[64];
	struct uprobe_multi multi = {.path = path,
				     .offsets = l->offsets,
				     .cookies = l->cookies,
				     .nr = l->nr,
				     .pid = l->of.pid,
				     .is_return = l->is_return,
				     .session = l->session};

	/* Through the descriptor: by name another file might be found than the one that is mapped.
	 */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", l->file);
	if (l->keeps)
		return open_event(l, path, true);
	return l->multi ? uprobe_multi_link(l->program, &multi) : link_perf(l, path);
}

int links_put(struct link_set *set, struct helper *helper, const struct helper_link *l)
{
	int fd = links_make(l);

	if (helper && (fd == -EPERM || fd == -EACCES))
		fd = helper_link(helper, l);
	return fd < 0 ? fd : keep_link(set, fd);
}

static void drop_set(struct link_set *set, struct link_closer *closing)
{
	for (size_t i = 0; i < set->nr; i++)
		link_closer_add(closing, set->fds[i]);
	free(set->fds);
	free(set->object);
}

bool links_clash(const struct links *l, const struct alloc_object *o)
{
	for (size_t i = 0; i < l->nr; i++)
		if (maps_same_file(&l->v[i].object->code, &o->code) &&
		    !alloc_object_same(l->v[i].object, o))
			return true;
	return false;
}

static bool is_kept(const struct allocators *keep, const struct link_set *set)
{
	for (size_t i = 0; keep && i < keep->nr; i++)
		if (alloc_object_same(&keep->v[i], set->object))
			return true;
	return false;
}

void links_drop(struct links *l, const struct allocators *keep, struct link_closer *closing)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->nr; i++)
		if (is_kept(keep, &l->v[i]))
			l->v[kept++] = l->v[i];
		else
			drop_set(&l->v[i], closing);
	l->nr = kept;
	if (kept)
		return;
	free(l->v);
	memset(l, 0, sizeof(*l));
}

#define MOST_THREADS 256 /* that wait side by side */

/* What one thread does: each @step-th from the @first on. */
struct share {
	void (*work)(void *ctx, size_t i);
	void *ctx;
	size_t first, step, nr;
	pthread_t thread;
	bool started;
};

static void *do_share(void *arg)
{
	const struct share *share = arg;

	for (size_t i = share->first; i < share->nr; i += share->step)
		share->work(share->ctx, i);
	return NULL;
}

/* Work that waits for the kernel most of the time: call @work(@ctx, i) for each i below @nr, in up
 * to
 * @threads threads, MOST_THREADS at most, with stacks of @stack bytes each.  What finds no thread
 * is done in this one.  Returns when all is done. */
static void side_by_side(size_t nr, size_t threads, size_t stack, void (*work)(void *ctx, size_t i),
			 void *ctx)
{
	struct share shares[MOST_THREADS];
	size_t nr_shares = nr < threads ? nr : threads;
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, stack);
	for (size_t i = 0; i < nr_shares; i++) {
		shares[i] = (struct share){
			.work = work, .ctx = ctx, .first = i, .step = nr_shares, .nr = nr};
		shares[i].started = !pthread_create(&shares[i].thread, &attr, do_share, &shares[i]);
	}
	for (size_t i = 0; i < nr_shares; i++)
		if (!shares[i].started)
			do_share(&shares[i]);
	for (size_t i = 0; i < nr_shares; i++)
		if (shares[i].started)
			pthread_join(shares[i].thread, NULL);
	pthread_attr_destroy(&attr);
}

#define PLACER_THREADS 64
#define PLACER_STACK   65536 /* bytes, of each */

struct placing_job {
	struct helper_link link;
	uint64_t offset, cookie;
	struct link_set *set;
	int fd; /* or -errno */
};

int placing_add(struct placing *p, struct link_set *set, const struct helper_link *l)
{
	if (grow_array(&p->v, p->nr, &p->room, sizeof(*p->v)))
		return -ENOMEM;
	p->v[p->nr++] = (struct placing_job){
		.link = *l, .offset = l->offsets[0], .cookie = l->cookies[0], .set = set};
	return 0;
}

static void place_one(void *ctx, size_t i)
{
	struct placing_job *job = &((struct placing *)ctx)->v[i];

	job->link.offsets = &job->offset;
	job->link.cookies = &job->cookie;
	job->fd = links_make(&job->link);
}

int placing_run(struct placing *p)
{
	int err = 0;

	side_by_side(p->nr, PLACER_THREADS, PLACER_STACK, place_one, p);
	for (size_t i = 0; i < p->nr; i++) {
		int fd = p->v[i].fd, kept = fd < 0 ? fd : keep_link(p->v[i].set, fd);

		if (!err)
			err = kept;
	}
	free(p->v);
	*p = (struct placing){0};
	return err;
}

#define CLOSER_STACK 262144 /* bytes, of each thread that waits for one */

struct link_closer {
	pthread_t thread; /* that begins one for each link */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int *fds; /* that wait for it */
	size_t nr, room;
	size_t busy; /* links that are being closed */
	bool over;
};

/* What a thread for one link is given. */
struct closing {
	struct link_closer *closer;
	int fd;
};

static void *close_link(void *arg)
{
	struct closing *closing = arg;
	struct link_closer *c = closing->closer;

	close(closing->fd);
	free(closing);
	pthread_mutex_lock(&c->lock);
	c->busy--;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* Close @fd, which counts as busy, in a thread of its own; in this one if there can be none. */
static void begin_closing(struct link_closer *c, int fd, const pthread_attr_t *attr, bool alone)
{
	struct closing *closing = malloc(sizeof(*closing));
	pthread_t thread;

	if (closing)
		*closing = (struct closing){c, fd};
	if (closing && !alone && !pthread_create(&thread, attr, close_link, closing))
		return;
	if (closing) {
		close_link(closing);
		return;
	}
	close(fd);
	pthread_mutex_lock(&c->lock);
	c->busy--;
	pthread_mutex_unlock(&c->lock);
}

/* One that comes while others wait for the kernel does not wait for them: it would wait twice. */
static void *close_all(void *arg)
{
	struct link_closer *c = arg;
	pthread_attr_t attr;

	sandbox_enter(-1);
	privileges_keep_in_thread(0); /* closing takes none */
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, CLOSER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_mutex_lock(&c->lock);
	while (!c->over || c->nr || c->busy) {
		bool alone = c->busy >= MOST_THREADS;
		int fd;

		if (!c->nr) {
			pthread_cond_wait(&c->changed, &c->lock);
			continue;
		}
		fd = c->fds[--c->nr];
		c->busy++;
		pthread_mutex_unlock(&c->lock);
		begin_closing(c, fd, &attr, alone);
		pthread_mutex_lock(&c->lock);
		pthread_cond_broadcast(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	pthread_attr_destroy(&attr);
	return NULL;
}

int link_closer_new(struct link_closer **out)
{
	struct link_closer *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	err = -pthread_create(&c->thread, NULL, close_all, c);
	if (err)
		free(c);
	else
		*out = c;
	return err;
}

void link_closer_add(struct link_closer *c, int fd)
{
	bool added;

	pthread_mutex_lock(&c->lock);
	added = !grow_array(&c->fds, c->nr, &c->room, sizeof(*c->fds));
	if (added)
		c->fds[c->nr++] = fd;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	if (!added)
		close(fd);
}

void link_closer_wait(struct link_closer *c)
{
	pthread_mutex_lock(&c->lock);
	while (c->busy || c->nr)
		pthread_cond_wait(&c->changed, &c->lock);
	pthread_mutex_unlock(&c->lock);
}

void link_closer_free(struct link_closer *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->over = true;
	pthread_cond_broadcast(&c->changed);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	free(c->fds);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	free(c);
}
