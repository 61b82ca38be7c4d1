/* to_start.c - see to_start.h
 *
 * When glibc's loader has mapped all that the program needs, it sets up the first thread's storage,
 * and with it the register fs, by arch_prctl(2) (csu/libc-tls.c and rtld.c, init_tls); then come
 * relocations and the libraries' constructors.
 */
#include "record/ptrace/to_start.h"

#include <asm/prctl.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#define MAX_STOPS 20000 /* two for each system call: four or five of these a library */

struct to_start_entry {
	pid_t pid;
	unsigned int stops;
};

static struct to_start_entry *find(const struct to_start *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->v[i].pid == pid)
			return &s->v[i];
	return NULL;
}

void to_start_add(struct to_start *s, pid_t pid)
{
	to_start_remove(s, pid);
	if (s->nr == s->room) {
		size_t room = s->room ? s->room * 2 : 16;
		struct to_start_entry *v = realloc(s->v, room * sizeof(*v));

		if (!v)
			return;
		s->v = v;
		s->room = room;
	}
	s->v[s->nr++] = (struct to_start_entry){.pid = pid};
}

void to_start_remove(struct to_start *s, pid_t pid)
{
	struct to_start_entry *e = find(s, pid);

	if (e)
		*e = s->v[--s->nr];
}

int to_start_request(const struct to_start *s, pid_t pid)
{
	return find(s, pid) ? PTRACE_SYSCALL : PTRACE_CONT;
}

bool to_start_is_there(struct to_start *s, pid_t pid)
{
	struct __ptrace_syscall_info info = {0};
	struct to_start_entry *e = find(s, pid);
	bool known, there;

	if (!e)
		return false;
	known = ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
		info.arch == AUDIT_ARCH_X86_64;
	there = known && info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_arch_prctl &&
		info.entry.args[0] == ARCH_SET_FS;
	/* a 32-bit program is not recorded */
	if (there || !known || ++e->stops > MAX_STOPS)
		to_start_remove(s, pid);
	return there;
}
