/* registers.c - see registers.h */
#include "record/reach/registers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "array.h"
#include "record/base/proc.h"

#define ARGS 6 /* of a system call */
#define SP   7 /* DWARF numbers, psABI figure 3.36 */
#define PC   16

static void set(struct mlk_reach_thread *thread, int reg, uint64_t value)
{
	thread->regs[reg] = value;
	thread->known |= 1u << reg;
}

void registers_parse(struct mlk_reach_thread *thread, const char *text)
{
	/* rdi, rsi, rdx, r10, r8, r9 */
	static const int places[ARGS] = {5, 4, 1, 10, 8, 9};
	uint64_t number[ARGS + 2];
	long call;
	int nr = 0;
	char *end;

	/* "running", "-1 sp pc", or "number args[6] sp pc" */
	call = strtol(text, &end, 10);
	if (end == text)
		return;
	for (text = end; nr < ARGS + 2; text = end) {
		number[nr] = strtoull(text, &end, 16);
		if (end == text)
			break;
		nr++;
	}
	if (nr != (call < 0 ? 2 : ARGS + 2))
		return;
	for (int i = 0; i < nr - 2; i++)
		set(thread, places[i], number[i]);
	set(thread, SP, number[nr - 2]);
	set(thread, PC, number[nr - 1]);
	thread->how = MLK_REACH_WAITING;
}

static void read_one(const struct target *t, pid_t tid, struct mlk_reach_thread *thread)
{
	char text[256];

	*thread = (struct mlk_reach_thread){.tid = (uint32_t)tid};
	if (!target_read_syscall(t, tid, text, sizeof(text)))
		registers_parse(thread, text);
}

int registers_read(const struct target *t, struct mlk_reach_thread **threads, size_t *nr)
{
	DIR *dir = proc_threads(t->pid);
	struct mlk_reach_thread *v = NULL;
	size_t room = 0;
	pid_t tid;

	*threads = NULL;
	*nr = 0;
	if (!dir)
		return -errno;
	while ((tid = proc_next_thread(dir)) > 0) {
		if (grow_array(&v, *nr, &room, sizeof(*v))) {
			closedir(dir);
			free(v);
			*nr = 0;
			return -ENOMEM;
		}
		read_one(t, tid, &v[(*nr)++]);
	}
	closedir(dir);
	*threads = v;
	return 0;
}
