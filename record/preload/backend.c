/* backend.c - a command with the preloaded library: begun, let go, listened to, ended */
#include "record/preload/backend.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/base/own_number.h"
#include "record/base/rlimits.h"
#include "record/preload/launch_preloaded.h"
#include "record/preload/preload_left_out.h"
#include "record/preload/process/facts.h"
#include "record/preload/process/process_table.h"
#include "record/preload/ring/merge_rings.h"
#include "record/preload/ring/preload_clock.h"
#include "record/preload/shared_memory.h"
#include "record/preload/wakeup.h"
#include "record/privilege/privileges.h"
#include "record/ptrace/launch.h"

#define GIVE_BACK_NS 20000000u /* between looks for ended threads */
#define HELLO_MS     20	       /* between looks whether the command ended before it came up */

struct preload {
	struct preload_header *memory;
	size_t bytes;
	struct preload_child child;
	struct facts facts;
	struct shared_rings *rings;
	struct preload_clock clock;
	struct preload_sink sink;
	struct preload_processes *processes;
	struct preload_accounts accounts;
	uint64_t give_back_ns, delay_ns, taken_ns;
	int fd; /* an eventfd */
	struct wakeup sleeper;
	bool stopped;	  /* by preload_stop() */
	bool guard;	  /* as struct preload_opts has it */
	bool own_numbers; /* as own_number_differs() of the process that was adopted */
};

static uint64_t to_ns(void *ctx, uint64_t time)
{
	struct preload *p = ctx;

	/* An overrun is reported separately from the events: by its time alone it is known that it
	 * came before the free that found it. */
	return p->guard ? preload_clock_ns(&p->clock, time)
			: preload_clock_event_ns(&p->clock, time);
}

static int on_event(void *ctx, uint64_t time_ns, void *data, const struct shared_view *view)
{
	struct preload *p = ctx;

	return p->sink.event(p->sink.ctx, time_ns, data, view);
}

static void on_named(void *ctx, uint32_t tgid, uint32_t tid, const char *name)
{
	struct preload *p = ctx;

	p->sink.named(p->sink.ctx, (pid_t)tgid, tid, name);
}

static uint32_t process_in(void *ctx, uint32_t slot)
{
	const struct preload *p = ctx;

	return preload_processes_in(p->processes, slot);
}

/* One that has ended keeps the number by which it called itself. */
static uint32_t thread_in(void *ctx, uint32_t tgid, uint32_t own)
{
	const struct preload *p = ctx;
	uint32_t tid = p->own_numbers ? (uint32_t)own_number_find((pid_t)tgid, (pid_t)own) : own;

	return tid ? tid : own;
}

static bool has_ended(void *ctx, uint32_t slot)
{
	const struct preload *p = ctx;

	return preload_processes_ended(p->processes, slot);
}

/* The library's settings, before it runs. */
static int fill_memory(struct preload *p, const struct preload_opts *opts)
{
	struct preload_header *h = p->memory;

	if (getrandom(&h->nonce, sizeof(h->nonce), 0) != sizeof(h->nonce))
		return -errno;
	h->layout = PRELOAD_LAYOUT;
	h->sizes = opts->rings;
	h->stack_limit = opts->stack_limit;
	h->clock = p->clock.is_tsc ? PRELOAD_CLOCK_TSC : PRELOAD_CLOCK_MONOTONIC;
	h->block_ns = opts->block_ns;
	h->follow = opts->follow;
	/* Until it becomes another user: then, before an exec, nobody else may examine it. */
	h->waits_at_fork = !geteuid() && !privileges_has(CAP_SYS_PTRACE);
	h->guard = opts->guard;
	filters_set_preload(opts->filters, &h->filter);
	h->all_threads = opts->filters->choose == CHOOSE_RECORDED;
	h->triggers = filters_preload_triggers(opts->filters);
	p->delay_ns = opts->filters->delay_ns;
	p->guard = opts->guard;
	h->recorder_pid = (uint32_t)getpid();
	h->recorder_fd = (uint32_t)p->child.memory;
	return facts_make(&p->facts, h);
}

/* ESRCH comes only when no such thread is left in that process. */
static bool is_gone(uint32_t tgid, uint32_t tid)
{
	return syscall(SYS_tgkill, (pid_t)tgid, (pid_t)tid, 0) && errno == ESRCH;
}

static bool process_has_ended(void *ctx, uint32_t tgid)
{
	const struct preload *p = ctx;

	return preload_processes_gone(p->processes, (pid_t)tgid);
}

static void set_up_accounts(struct preload *p, const struct preload_opts *opts)
{
	bool by_thread = filters_by_thread(opts->filters);
	void *accounts = (uint8_t *)p->memory + preload_accounts_offset(&opts->rings);
	void *choices = (uint8_t *)p->memory + preload_choices_offset(&opts->rings);

	p->accounts.opts = (struct preload_accounts_opts){.memory = p->memory,
							  .shared = by_thread ? accounts : NULL,
							  .choices = by_thread ? choices : NULL,
							  .is_gone = is_gone,
							  .has_ended = process_has_ended,
							  .named = on_named,
							  .ctx = p};
}

struct preload_accounts *preload_accounts(struct preload *p)
{
	return &p->accounts;
}

uint32_t preload_process_in(const struct preload *p, uint32_t slot)
{
	return preload_processes_ended(p->processes, slot)
		       ? 0
		       : preload_processes_in(p->processes, slot);
}

static int set_up(struct preload *p, const struct preload_opts *opts)
{
	struct shared_rings_opts rings = {.sizes = opts->rings,
					  .stack_limit = opts->stack_limit,
					  .event = on_event,
					  .to_ns = to_ns,
					  .process_in = process_in,
					  .has_ended = has_ended,
					  .thread_in = thread_in,
					  .named = on_named,
					  .ctx = p};
	struct preload_processes_opts processes = {
		.facts = &p->facts, .sink = &p->sink, .clock = &p->clock, .follow = opts->follow};
	int err = shared_memory_make(opts, &p->child.memory, &p->bytes, &p->memory);

	if (err)
		return err;
	p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (p->fd < 0)
		return -errno;
	preload_clock_init(&p->clock);
	err = fill_memory(p, opts);
	set_up_accounts(p, opts);
	p->child.header = rings.memory = processes.memory = p->memory;
	processes.fd = p->child.memory;
	if (!err)
		err = preload_processes_new(&p->processes, &processes);
	return err ? err : shared_rings_new(&p->rings, &rings);
}

int preload_new(struct preload **out, const struct preload_opts *opts)
{
	struct preload *p = calloc(1, sizeof(*p));
	int err;

	*out = NULL;
	if (!p) {
		log_error("cannot record: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	p->fd = p->child.memory = -1;
	err = opts->memory < 0 ? preload_find_library(p->child.library, sizeof(p->child.library))
			       : 0;
	if (!err) {
		err = set_up(p, opts);
		if (err)
			shared_memory_explain(p->bytes, err);
		else if (opts->memory < 0)
			shared_memory_warn(p->bytes);
	}
	if (err)
		preload_free(p);
	else
		*out = p;
	return err;
}

/* Wait until the library has come up in the child.  False: it ended before. */
static bool meet(struct preload *p, pid_t pid)
{
	struct timespec wait = {.tv_nsec = HELLO_MS * 1000000};
	siginfo_t info;

	for (;;) {
		uint32_t seen = __atomic_load_n(&p->memory->wake, __ATOMIC_ACQUIRE);

		if (__atomic_load_n(&p->memory->hello, __ATOMIC_ACQUIRE))
			return true;
		memset(&info, 0, sizeof(info));
		if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid)
			return false;
		wakeup_wait(&p->memory->wake, seen, &wait);
	}
}

/* Be there for process @pid, the first, called @name.  Returns 0, or -errno after one sentence was
 * logged. */
static int listen_to(struct preload *p, pid_t pid, const char *name)
{
	int err;

	/* It is no other process's that the recorder begins: a process that has it is recorded. */
	madvise(p->memory, p->bytes, MADV_DONTFORK);
	/* The library leaves when the recorder seems to be gone. */
	if (!wakeup_start(&p->sleeper, p->memory, p->fd)) {
		log_error("cannot record: no thread could be started; raise the limit on processes "
			  "(ulimit -u)");
		return -EAGAIN;
	}
	err = preload_processes_start(p->processes, pid);
	if (err)
		log_error("cannot watch '%s': %s%s", name, strerror(-err),
			  err == -EMFILE ? " (ulimit -n)" : "");
	return err;
}

int preload_adopt(struct preload *p, pid_t pid)
{
	struct preload_process *first = &p->memory->processes[0];
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	p->own_numbers = own_number_differs(pid);
	p->memory->hello = 1;
	first->pid = (uint32_t)pid;
	first->program = 1 << PRELOAD_SLOT_BITS;
	return listen_to(p, pid, name);
}

const struct facts *preload_facts(const struct preload *p)
{
	return &p->facts;
}

struct preload_header *preload_shared_memory(const struct preload *p, size_t *bytes)
{
	*bytes = p->bytes;
	return p->memory;
}

int preload_launch(struct preload *p, char **argv, pid_t *pid, int *ended)
{
	int status = preload_start(&p->child, argv, pid);

	if (status)
		return status;
	if (listen_to(p, *pid, argv[0])) {
		launch_abort(*pid);
		return EXIT_RECORD_FAILED;
	}
	if (meet(p, *pid))
		return 0;
	while (waitpid(*pid, ended, 0) < 0 && errno == EINTR)
		;
	log_warn("nothing was recorded: the preloaded library did not start in '%s'", argv[0]);
	return LAUNCH_ENDED;
}

void preload_set_sink(struct preload *p, const struct preload_sink *sink)
{
	p->sink = *sink;
}

void preload_memory(const struct preload *p, dev_t *dev, ino_t *inode)
{
	struct stat st = {0};

	if (fstat(p->child.memory, &st))
		st = (struct stat){0};
	*dev = st.st_dev;
	*inode = st.st_ino;
}

void preload_go(struct preload *p)
{
	/* Nothing of the command's was there before: no time stands for no delay. */
	if (p->delay_ns)
		p->memory->filter.begin = preload_clock_after(&p->clock, p->delay_ns);
	preload_processes_go(p->processes);
}

int preload_fd(const struct preload *p)
{
	return p->fd;
}

static void give_back(struct preload *p)
{
	uint64_t now = clock_now_ns();

	if (now < p->give_back_ns && !shared_rings_all_taken(p->rings))
		return;
	p->give_back_ns = now + GIVE_BACK_NS;
	shared_rings_give_back(p->rings, is_gone);
}

int preload_consume(struct preload *p, bool final)
{
	uint64_t waiting, until, next;
	int err = 0;

	__atomic_store_n(&p->memory->asleep, 0, __ATOMIC_RELAXED);
	if (read(p->fd, &waiting, sizeof(waiting)) < 0 && errno != EAGAIN)
		return -errno;
	preload_processes_look(p->processes, p->taken_ns);
	until = shared_rings_look(p->rings, preload_clock_now(&p->clock),
				  preload_clock_margin(&p->clock));
	preload_processes_find_code(p->processes, p->taken_ns);
	final |= preload_processes_over(p->processes);
	if (final)
		until = UINT64_MAX;
	while (!err && (next = preload_processes_next(p->processes)) <= until &&
	       next < UINT64_MAX) {
		err = shared_rings_consume(p->rings, next);
		if (!err)
			preload_processes_apply(p->processes);
	}
	if (!err)
		err = shared_rings_consume(p->rings, until);
	if (!err && !final)
		p->taken_ns = to_ns(p, until);
	if (!err) {
		give_back(p);
		err = preload_accounts_keep_up(&p->accounts);
		__atomic_store_n(&p->memory->asleep, 1, __ATOMIC_SEQ_CST);
		/* A process that found it awake meanwhile did not wake it. */
		if (!err && !final && shared_rings_pressed(p->rings))
			err = -EAGAIN;
	}
	return err;
}

uint64_t preload_taken_ns(const struct preload *p)
{
	return p->taken_ns;
}

void preload_stop(struct preload *p)
{
	struct timespec moment = {.tv_nsec = 2000000};

	p->stopped = true;
	preload_tell_left_out(p->memory);
	__atomic_store_n(&p->memory->ended, 1, __ATOMIC_SEQ_CST);
	preload_slot_wake(&p->memory->ended);
	preload_processes_wake(p->processes);
	/* What is being written is whole then, as a rule. */
	nanosleep(&moment, NULL);
}

void preload_losses(const struct preload *p, struct mlk_losses *losses)
{
	bool first;

	shared_rings_losses(p->rings, losses);
	preload_accounts_losses(&p->accounts, losses);
	/* The last one may come up yet, until the end. */
	losses->count[MLK_LOST_EXEC] += p->stopped ? preload_processes_lost(p->processes) : 0;
	losses->count[MLK_LOST_EXEC] += preload_passed_by(p->memory);
	losses->count[MLK_LOST_EXEC] += preload_calls_not_seen(p->memory);
	losses->count[MLK_LOST_MAPS] += preload_processes_maps_lost(p->processes);
	losses->count[MLK_LOST_LOOK] += preload_processes_unlooked(p->processes, &first);
	losses->skipped[MLK_SKIPPED_CHILD] +=
		__atomic_load_n(&p->memory->left_children, __ATOMIC_RELAXED);
}

void preload_tell_lost(const struct preload *p)
{
	preload_processes_tell_lost(p->processes);
}

void preload_tell_unlooked(const struct preload *p, pid_t pid)
{
	bool first;

	preload_processes_unlooked(p->processes, &first);
	if (first)
		preload_explain_unlooked(pid);
}

void preload_free(struct preload *p)
{
	if (!p)
		return;
	wakeup_end(&p->sleeper);
	if (p->memory)
		munmap(p->memory, p->bytes);
	shared_rings_free(p->rings);
	accounts_release(&p->accounts.sums);
	preload_processes_free(p->processes);
	facts_release(&p->facts);
	if (p->fd >= 0)
		close(p->fd);
	if (p->child.memory >= 0)
		close(p->child.memory);
	free(p);
}
