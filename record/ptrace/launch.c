/* launch.c - follow a new process with ptrace through its dynamic loader's work */
#include "record/ptrace/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/rlimits.h"
#include "record/module/elffile.h"
#include "record/module/module_table.h"
#include "record/target/link_map.h"
#include "record/target/maps.h"
#include "record/target/target.h"

void launch_not_begun(int report)
{
	int err = errno;

	_exit(write(report, &err, sizeof(err)) == (ssize_t)sizeof(err) ? EXIT_NOT_FOUND
								       : EXIT_RECORD_FAILED);
}

/* In the child: once the parent has written to @go, become the command; if that fails, tell the
 * parent why through @report. */
static void child(char **argv, int report, int go, void (*on_child)(int))
{
	char traced;

	signal(SIGCHLD, on_child);
	rlimits_restore();
	if (read(go, &traced, 1) != 1)
		_exit(EXIT_RECORD_FAILED);
	execvp(argv[0], argv);
	launch_not_begun(report);
}

/* End the child, whose start cannot be followed.  Returns the exit status. */
static int stop_following(const char *name, pid_t pid)
{
	log_error("cannot follow the start of '%s' with ptrace; start it first and attach with -p",
		  name);
	launch_abort(pid);
	return EXIT_RECORD_FAILED;
}

int launch_explain(const char *name, int err)
{
	if (err == ENOENT) {
		log_error("cannot start '%s': no such command; check its name and PATH", name);
		return EXIT_NOT_FOUND;
	}
	log_error("cannot start '%s': %s%s", name, strerror(err),
		  err == EAGAIN ? "; raise the limit on processes (ulimit -u)" : "");
	return EXIT_NOT_EXECUTABLE;
}

/* Wait until the traced child has become the command, whose exec stops it.  0 or an exit status;
 * no child is left then. */
static int wait_for_exec(const char *name, pid_t pid, int report)
{
	int why, status, sig = 0;
	/* Either exec closes the pipe, or the reason of its failure comes through it. */
	ssize_t n = read(report, &why, sizeof(why));

	if (n == (ssize_t)sizeof(why)) {
		waitpid(pid, &status, 0);
		return launch_explain(name, why);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return 0;
		sig = status >> 16 ? 0 : WSTOPSIG(status);
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)sig);
	}
	return stop_following(name, pid);
}

/* Trace the child, which waits for a byte through @go, and see it become the command. */
static int trace_exec(const char *name, pid_t pid, int report, int go)
{
	const uintptr_t options = PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC;

	if (ptrace(PTRACE_SEIZE, pid, NULL, (void *)options)) {
		int err = errno;

		launch_abort(pid);
		log_error("cannot follow the start of '%s' with ptrace (%s; is mleak itself "
			  "traced?); start it first and attach with -p",
			  name, strerror(err));
		return EXIT_RECORD_FAILED;
	}
	if (write(go, "", 1) != 1)
		kill(pid, SIGKILL);
	return wait_for_exec(name, pid, report);
}

static void close_pipe(int fds[2])
{
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int launch_fork(struct launch *l, char **argv)
{
	int report[2] = {-1, -1}, go[2] = {-1, -1};
	void (*on_child)(int) =
		signal(SIGCHLD, SIG_DFL); /* if ignored, nothing could be waited for */

	l->pid = -1;
	if (!pipe2(report, O_CLOEXEC) && !pipe2(go, O_CLOEXEC))
		l->pid = fork();
	if (l->pid == 0) {
		close(go[1]); /* or its end would not be seen */
		child(argv, report[1], go[0], on_child);
	}
	if (l->pid < 0) {
		log_error("cannot start '%s': %s", argv[0], strerror(errno));
		close_pipe(report);
		close_pipe(go);
		return EXIT_RECORD_FAILED;
	}
	close(report[1]);
	close(go[0]);
	l->report = report[0];
	l->go = go[1];
	return 0;
}

void launch_give_up(const struct launch *l)
{
	close(l->report);
	close(l->go);
	launch_abort(l->pid);
}

/* An instruction replaced by int3 in the stopped child. */
struct breakpoint {
	uint64_t at; /* 0: none */
	long word;   /* what is there without it */
};

static void set_breakpoint(pid_t pid, struct breakpoint *b, uint64_t at)
{
	errno = 0;
	b->word = ptrace(PTRACE_PEEKTEXT, pid, (void *)at, NULL);
	b->at = 0;
	if (at && !errno &&
	    !ptrace(PTRACE_POKETEXT, pid, (void *)at, (void *)((b->word & ~0xffl) | 0xcc)))
		b->at = at;
}

static void clear_breakpoint(pid_t pid, struct breakpoint *b)
{
	if (b->at)
		ptrace(PTRACE_POKETEXT, pid, (void *)b->at, (void *)b->word);
}

/* Where the loader calls its debugger: the function has been named so since SVR4. */
static uint64_t loader_hook(const struct target *t, uint64_t base)
{
	static const char *const name[] = {"_dl_debug_state"};
	struct elf_function found = {0};
	const struct elf_names names = {name, 1, &found};
	struct maps maps = {0};
	const struct mlk_mapping *m = NULL;

	if (!maps_read(&maps, t->pid))
		m = maps_find(&maps, base);
	if (m)
		module_functions(t, m, ELF_EXPORTED, &names);
	if (m && !found.found)
		module_functions(t, m, ELF_ALL, &names);
	maps_release(&maps);
	return found.found ? base + found.address : 0;
}

enum step { STEP_ON, STEP_THERE, STEP_ENDED, STEP_FAILED };

/* Let the stopped child run until a trap (*rip is where it goes on) or its end. */
static enum step run_to_trap(pid_t pid, int *status, struct user_regs_struct *regs)
{
	int sig = 0;

	for (;;) {
		if (ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)sig) ||
		    waitpid(pid, status, 0) != pid)
			return STEP_FAILED;
		if (!WIFSTOPPED(*status))
			return STEP_ENDED;
		if (WSTOPSIG(*status) == SIGTRAP && !(*status >> 16))
			return ptrace(PTRACE_GETREGS, pid, NULL, regs) ? STEP_FAILED : STEP_ON;
		/* A stop of the job, and its end, is over for us when it goes on. */
		sig = *status >> 16 ? 0 : WSTOPSIG(*status);
	}
}

/* At a breakpoint: go back to before it, and execute what it replaced if the child is not where it
 * is to be held. */
static enum step leave_trap(const struct target *t, struct breakpoint *b,
			    struct user_regs_struct *regs, bool there)
{
	int status;

	clear_breakpoint(t->pid, b);
	regs->rip = b->at;
	if (ptrace(PTRACE_SETREGS, t->pid, NULL, regs))
		return STEP_FAILED;
	if (there)
		return STEP_THERE;
	if (ptrace(PTRACE_SINGLESTEP, t->pid, NULL, NULL) ||
	    waitpid(t->pid, &status, 0) != t->pid || !WIFSTOPPED(status))
		return STEP_FAILED;
	set_breakpoint(t->pid, b, b->at);
	return STEP_ON;
}

/*
 * Run the child until all objects it starts with are mapped and relocated, before a constructor has
 * run.  There the loader calls its debugger; where it does not, constructors are over at the
 * program's entry.  A statically linked program is whole from the start.
 */
static enum step run_to_start(const struct target *t, int *status)
{
	uint64_t base = target_auxv(t, AT_BASE);
	struct breakpoint hook, entry;
	struct user_regs_struct regs;
	enum step step = STEP_ON;
	int calls = 0;

	if (!base)
		return STEP_THERE;
	set_breakpoint(t->pid, &hook, loader_hook(t, base));
	set_breakpoint(t->pid, &entry, target_auxv(t, AT_ENTRY));
	if (!hook.at && !entry.at)
		return STEP_FAILED;
	while (step == STEP_ON) {
		step = run_to_trap(t->pid, status, &regs);
		if (step != STEP_ON)
			break;
		if (hook.at && regs.rip - 1 == hook.at)
			step = leave_trap(t, &hook, &regs, link_map_complete(t, ++calls > 1));
		else if (entry.at && regs.rip - 1 == entry.at)
			step = leave_trap(t, &entry, &regs, true);
	}
	if (step == STEP_THERE) {
		clear_breakpoint(t->pid, &hook);
		clear_breakpoint(t->pid, &entry);
	}
	return step;
}

/* Is the child's program one that can be recorded? */
static bool is_supported(pid_t pid)
{
	char path[64];
	Elf *elf;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	elf = elffile_open(fd);
	elf_end(elf);
	close(fd);
	return elf != NULL;
}

int launch_start(const struct launch *l, char **argv, pid_t *pid, int *ended)
{
	int status = trace_exec(argv[0], l->pid, l->report, l->go);
	struct target t = {.pid = l->pid, .task = l->pid};
	enum step step;

	close(l->report);
	close(l->go);
	*pid = l->pid;
	if (status)
		return status;
	if (!is_supported(*pid)) {
		log_error("cannot record '%s': it is not a 64-bit x86-64 program, and mleak "
			  "records no others yet",
			  argv[0]);
		launch_abort(*pid);
		return EXIT_RECORD_FAILED;
	}
	step = run_to_start(&t, ended);
	if (step == STEP_THERE)
		return 0;
	return step == STEP_ENDED ? LAUNCH_ENDED : stop_following(argv[0], *pid);
}

int launch_release(pid_t pid)
{
	return ptrace(PTRACE_DETACH, pid, NULL, NULL) ? -errno : 0;
}

void launch_abort(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
}
