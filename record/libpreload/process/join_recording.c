/* join_recording.c - a process becomes one of those recorded
 *
 * With --follow a child of fork() has the memory from its parent, and a program begun by exec finds
 * it by its environment.  Each takes a slot in the table of processes, and waits there until the
 * recorder has seen that it is one that has mapped this memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/libpreload/guard/guard.h"
#include "record/libpreload/process/begun.h"

/* How long the recorder may take to let a process run. */
#define GO_NS	    10000000000ull /* the command */
#define GO_CHILD_NS 2000000000ull

/* The memory, which a child of fork() is to find; NULL: children are not recorded. */
static struct preload_header *kept;

/* The same where the recorder left this process alone, but not what it begins: there it may find
 * what it could not see here. */
static struct preload_header *left_alone;

static uint32_t own_pid(void)
{
	return (uint32_t)preload_syscall(SYS_getpid, 0, 0, 0, 0);
}

/* Is @pid this process's number for the recorder, too, or that of another pid namespace?  In /proc
 * the memory was found, so it is the recorder's.  A new one mounted over it comes too late: by then
 * the namespace's first process has been asked, and its children have no memory. */
static bool is_own_number(uint32_t pid)
{
	char text[16];
	uint32_t number = 0;
	long n = preload_syscall(SYS_readlinkat, AT_FDCWD, (long)"/proc/self", (long)text,
				 sizeof(text));

	for (long i = 0; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		number = number * 10 + (uint32_t)(text[i] - '0');
	return n <= 0 || number == pid; /* without /proc nothing is known against it */
}

/* The slot of process @pid, unless the recorder left it alone there, and may not have cleared it.
 */
static struct preload_process *find_slot(struct preload_header *h, uint32_t pid)
{
	for (uint32_t i = 0; i < PRELOAD_MAX_PROCESSES; i++)
		if (__atomic_load_n(&h->processes[i].pid, __ATOMIC_ACQUIRE) == pid &&
		    __atomic_load_n(&h->processes[i].go, __ATOMIC_ACQUIRE) != PRELOAD_GONE)
			return &h->processes[i];
	return NULL;
}

static struct preload_process *take_slot(struct preload_header *h, uint32_t pid)
{
	for (uint32_t i = 1; i < PRELOAD_MAX_PROCESSES; i++) {
		uint32_t none = 0;

		if (!__atomic_load_n(&h->processes[i].pid, __ATOMIC_RELAXED) &&
		    __atomic_compare_exchange_n(&h->processes[i].pid, &none, pid, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return &h->processes[i];
	}
	__atomic_fetch_add(&h->no_slot, 1, __ATOMIC_RELAXED);
	begun_lost(h, PRELOAD_WHY_FULL);
	return NULL;
}

/* The same, unless the number may be another's: it is lost without waiting. */
static struct preload_process *take_own_slot(struct preload_header *h, uint32_t pid)
{
	if (is_own_number(pid))
		return take_slot(h, pid);
	__atomic_fetch_add(&h->no_slot, 1, __ATOMIC_RELAXED);
	begun_lost(h, PRELOAD_WHY_NAMESPACE);
	return NULL;
}

/* From now on this process is the one of slot @p, and runs program @number. */
static void settle(struct preload_header *h, struct preload_process *p, uint32_t number)
{
	uint32_t slot = (uint32_t)(p - h->processes);

	preload_state.process = p;
	preload_state.program = number << PRELOAD_SLOT_BITS | slot;
	preload_facts_settle(slot);
	__atomic_store_n(&p->program, preload_state.program, __ATOMIC_RELEASE);
}

/* What the recorder answers the process of slot @p.  PRELOAD_WAIT: nothing in time, or it is over.
 */
static uint32_t await(struct preload_header *h, struct preload_process *p)
{
	uint64_t limit_ns = p == h->processes ? GO_NS : GO_CHILD_NS;
	uint64_t start = preload_monotonic_ns();
	uint32_t go;

	while ((go = __atomic_load_n(&p->go, __ATOMIC_ACQUIRE)) == PRELOAD_WAIT) {
		preload_wake(&h->wake);
		preload_sleep(&p->go, 0, 100000000);
		if (preload_is_over(h))
			break;
		if (preload_monotonic_ns() - start < limit_ns)
			continue;
		__atomic_fetch_add(&h->no_slot, 1, __ATOMIC_RELAXED);
		begun_lost(h, PRELOAD_WHY_LATE);
		break;
	}
	return go;
}

/* Wait until the recorder lets the process of slot @p run.  False: it does not. */
static bool wait_for_go(struct preload_header *h, struct preload_process *p)
{
	uint32_t go;

	__atomic_store_n(&p->waits, 1, __ATOMIC_RELEASE);
	go = await(h, p);
	__atomic_store_n(&p->waits, 0, __ATOMIC_RELEASE);
	if (go == PRELOAD_GO_ALONE) {
		begun_lost(h, p->why);
		__atomic_store_n(&p->go, PRELOAD_GONE, __ATOMIC_RELEASE);
	}
	return go == PRELOAD_GO;
}

/* Daemons close all descriptors when they start; their children become other users. */
static void keep_again(void)
{
	const struct preload_settings *set = &preload_settings;
	int saved_errno = errno;

	if (preload_kept_as() >= 0 && preload_kept() < 0)
		preload_keep(preload_reopen(set->recorder_pid, set->recorder_fd), -1, true);
	errno = saved_errno;
}

/* In the child, before anything else. */
static void become_child(void)
{
	uint32_t pid = own_pid(), parent = preload_state.pid;
	struct preload_process *p = NULL;

	preload_state.pid = pid;
	preload_state.passed_by = false; /* its program was counted */
	/* A child of a thread has that one's stack for its own. */
	if (preload_state.main_thread != (uint64_t)__builtin_thread_pointer())
		preload_state.main_thread = 0;
	if (!preload_forget_rings())
		__atomic_fetch_add(&kept->no_slot, 1, __ATOMIC_RELAXED);
	else if (!preload_is_over(kept))
		p = take_own_slot(kept, pid);
	/* Not before its slot can be seen: a thread that waits for it would wait no longer. */
	__atomic_fetch_add(&kept->children, 1, __ATOMIC_RELEASE);
	if (!p) {
		left_alone = kept;
		kept = NULL;
		return;
	}
	__atomic_store_n(&p->parent, parent, __ATOMIC_RELAXED);
	settle(kept, p, preload_state.program >> PRELOAD_SLOT_BITS);
	preload_sums_begin(kept, false);
	keep_again();
}

/* What it would take is forbidden: this child is lost. */
static void leave(void)
{
	__atomic_fetch_add(&kept->no_slot, 1, __ATOMIC_RELAXED);
	preload_tell_confined(kept, PRELOAD_LEFT_OUT);
	kept = NULL;
}

void preload_not_passed_by(void)
{
	struct preload_header *h = preload_shared();

	if (__atomic_exchange_n(&preload_state.passed_by, false, __ATOMIC_RELAXED) && h)
		__atomic_fetch_sub(&h->passed_by, 1, __ATOMIC_RELAXED);
}

static void before_fork(void)
{
	if (kept && !preload_state.confined)
		__atomic_fetch_add(&kept->forks, 1, __ATOMIC_RELEASE);
}

static void prepare_fork(void)
{
	if (!preload_no_calls())
		preload_give_up_left();
	before_fork();
}

static void in_child(void)
{
	if (kept && preload_state.confined)
		leave();
	else if (kept)
		become_child();
	if (kept && preload_settings.waits_at_fork)
		preload_rejoin();
}

struct preload_header *preload_followed(void)
{
	return kept;
}

struct preload_header *preload_left_alone(void)
{
	return left_alone;
}

struct preload_header *preload_rejoin(void)
{
	struct preload_header *h = kept;

	if (h && preload_state.confined)
		leave();
	if (!kept)
		return NULL;
	/* a child of the system call alone */
	if (preload_state.pid != own_pid()) {
		before_fork();
		become_child();
	}
	if (kept && !wait_for_go(h, preload_state.process)) {
		left_alone = h;
		kept = NULL;
	}
	if (!kept)
		return NULL;
	preload_own.shared = h;
	guard_note(PRELOAD_GUARD_WATCHED);
	return h;
}

bool preload_join(struct preload_header *h, bool *fresh)
{
	/* The command is where the recorder is, and without --follow there is no other. */
	bool own = !h->follow || is_own_number(preload_state.pid);
	struct preload_process *p = own ? find_slot(h, preload_state.pid) : NULL;
	uint32_t number;

	*fresh = !p;
	if (!p && h->follow) {
		p = take_own_slot(h, preload_state.pid);
		if (p)
			__atomic_store_n(&p->parent, (uint32_t)getppid(), __ATOMIC_RELAXED);
	}
	/* As in become_child(). */
	number = __atomic_add_fetch(&h->hello, 1, __ATOMIC_ACQ_REL);
	if (!p)
		return false;
	begun_came(h);
	settle(h, p, number);
	if (preload_state.passed_by)
		__atomic_fetch_add(&h->passed_by, 1, __ATOMIC_RELAXED);
	if (preload_state.calls_unseen)
		__atomic_fetch_add(&h->calls_unseen, 1, __ATOMIC_RELAXED);
	preload_wake(&h->wake);
	if (!wait_for_go(h, p))
		return false;
	begun_is(0);
	if (h->follow && !pthread_atfork(prepare_fork, NULL, in_child))
		kept = h;
	return true;
}
