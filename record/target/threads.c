/* threads.c - a table by tid */
#include "record/target/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct thread_entry {
	uint32_t tid; /* 0: free slot */
	bool seen;    /* it did something: its name is wanted */
	bool written;
	char name[16];	  /* the kernel's TASK_COMM_LEN */
	char claimed[16]; /* as the thread said */
};

static struct thread_entry *slot_of(struct thread_entry *slots, size_t room, uint32_t tid)
{
	size_t i = tid * 0x9e3779b1u & (room - 1);

	while (slots[i].tid && slots[i].tid != tid)
		i = (i + 1) & (room - 1);
	return &slots[i];
}

static int grow(struct threads *ts)
{
	size_t room = ts->room ? ts->room * 2 : 64;
	struct thread_entry *slots = calloc(room, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < ts->room; i++)
		if (ts->slots[i].tid)
			*slot_of(slots, room, ts->slots[i].tid) = ts->slots[i];
	free(ts->slots);
	ts->slots = slots;
	ts->room = room;
	return 0;
}

/* The entry of @tid, made if it is new; NULL when out of memory. */
static struct thread_entry *entry_of(struct threads *ts, uint32_t tid)
{
	struct thread_entry *e;

	if ((ts->nr + 1) * 2 > ts->room && grow(ts))
		return NULL;
	e = slot_of(ts->slots, ts->room, tid);
	if (!e->tid) {
		e->tid = tid;
		ts->nr++;
	}
	return e;
}

int threads_see(struct threads *ts, uint32_t tid)
{
	struct thread_entry *e;

	if (tid == ts->last || !tid)
		return 0;
	e = entry_of(ts, tid);
	if (!e)
		return -ENOMEM;
	ts->last = tid;
	ts->unwritten |= !e->seen;
	e->seen = true;
	return 0;
}

/* The entry of @tid gets @name, which may be "": to be read. */
static struct thread_entry *set_name(struct threads *ts, uint32_t tid, const char *name)
{
	struct thread_entry *e = entry_of(ts, tid);

	if (!e)
		return NULL;
	snprintf(e->name, sizeof(e->name), "%s", name);
	e->written = false;
	ts->unwritten |= e->seen;
	return e;
}

int threads_name(struct threads *ts, uint32_t tid, const char *name)
{
	struct thread_entry *e = tid ? set_name(ts, tid, name) : NULL;

	if (!e)
		return tid ? -ENOMEM : 0;
	e->seen = true;
	ts->unwritten = true;
	return 0;
}

const char *threads_find(const struct threads *ts, uint32_t tid)
{
	return ts->room ? slot_of(ts->slots, ts->room, tid)->name : "";
}

int threads_claim(struct threads *ts, uint32_t tid, const char *name)
{
	struct thread_entry *e = tid ? entry_of(ts, tid) : NULL;

	if (!e)
		return tid ? -ENOMEM : 0;
	snprintf(e->claimed, sizeof(e->claimed), "%s", name);
	return 0;
}

static void read_name(struct thread_entry *e, const struct target *t)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%u/comm", (int)t->pid, e->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* it has ended: its name is not known */
	n = read(fd, e->name, sizeof(e->name) - 1);
	close(fd);
	e->name[n > 0 && !target_is_reaped(t) ? n : 0] = '\0';
	e->name[strcspn(e->name, "\n")] = '\0';
}

int threads_inherit(struct threads *ts, uint32_t tid, struct threads *from, const struct target *of,
		    uint32_t parent)
{
	struct thread_entry *known = parent ? entry_of(from, parent) : NULL;
	char name[sizeof(known->name)] = "";

	if (!tid || !parent)
		return 0;
	if (!known)
		return -ENOMEM;
	if (!known->name[0])
		read_name(known, of);
	memcpy(name, known->name, sizeof(name));
	return set_name(ts, tid, name) ? 0 : -ENOMEM;
}

int threads_write(struct threads *ts, const struct target *t, struct mlk_writer *w)
{
	struct mlk_thread *list;
	size_t nr = 0;
	int err;

	if (!ts->unwritten)
		return 0;
	list = calloc(ts->nr, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < ts->room; i++) {
		struct thread_entry *e = &ts->slots[i];

		if (!e->tid || !e->seen || e->written)
			continue;
		if (!e->name[0])
			read_name(e, t);
		if (!e->name[0])
			memcpy(e->name, e->claimed, sizeof(e->name));
		e->written = true;
		list[nr++] = (struct mlk_thread){
			.tgid = (uint32_t)t->pid, .tid = e->tid, .name = e->name};
	}
	ts->unwritten = false;
	err = nr ? mlk_writer_threads(w, list, nr) : 0;
	free(list);
	return err;
}

void threads_release(struct threads *ts)
{
	free(ts->slots);
	memset(ts, 0, sizeof(*ts));
}
