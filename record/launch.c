/* launch.c - follow a new process with ptrace through its dynamic loader's work */
#include "record/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mleak.h"
#include "record/maps.h"
#include "record/target.h"

/* Why the child could not become the command. */
struct failure {
	int untraceable; /* ptrace(2) was refused, not execve(2) */
	int err;
};

/* In the child: become the command; if that fails, tell the parent why through @report. */
static void child(char **argv, int report, void (*on_child)(int))
{
	struct failure why = {0};

	signal(SIGCHLD, on_child);
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		why.untraceable = 1;
	else
		execvp(argv[0], argv);
	why.err = errno;
	if (write(report, &why, sizeof(why)) != (ssize_t)sizeof(why))
		_exit(EXIT_RECORD_FAILED);
	_exit(EXIT_NOT_FOUND);
}

static int explain(const char *name, const struct failure *why)
{
	if (why->untraceable) {
		log_error("cannot follow the start of '%s' with ptrace (%s; is mleak itself "
			  "traced?); start "
			  "it first and attach with -p",
			  name, strerror(why->err));
		return EXIT_RECORD_FAILED;
	}
	if (why->err == ENOENT) {
		log_error("cannot start '%s': no such command; check its name and PATH", name);
		return EXIT_NOT_FOUND;
	}
	log_error("cannot start '%s': %s", name, strerror(why->err));
	return EXIT_NOT_EXECUTABLE;
}

/* Start the child and wait until it has become the command.  0 or an exit status. */
static int start(char **argv, pid_t *pid)
{
	int report[2], err, status;
	void (*on_child)(int) =
		signal(SIGCHLD, SIG_DFL); /* if ignored, nothing could be waited for */
	struct failure why;
	ssize_t n;

	if (pipe2(report, O_CLOEXEC)) {
		log_error("cannot start '%s': %s", argv[0], strerror(errno));
		return EXIT_RECORD_FAILED;
	}
	*pid = fork();
	if (*pid == 0)
		child(argv, report[1], on_child);
	err = errno;
	close(report[1]);
	if (*pid < 0) {
		log_error("cannot start '%s': %s", argv[0], strerror(err));
		close(report[0]);
		return EXIT_RECORD_FAILED;
	}
	/* Either exec closes the pipe, or the reason of its failure comes through it. */
	n = read(report[0], &why, sizeof(why));
	close(report[0]);
	if (n == (ssize_t)sizeof(why)) {
		waitpid(*pid, &status, 0);
		return explain(argv[0], &why);
	}
	if (waitpid(*pid, &status, 0) == *pid && WIFSTOPPED(status) &&
	    !ptrace(PTRACE_SETOPTIONS, *pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL))
		return 0;
	log_error("cannot follow the start of '%s' with ptrace; start it first and attach with -p",
		  argv[0]);
	launch_abort(*pid);
	return EXIT_RECORD_FAILED;
}

/* Where the kernel put the program's interpreter (the dynamic loader); 0: it has none. */
static uint64_t loader_base(pid_t pid)
{
	Elf64_auxv_t aux[64];
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, aux, sizeof(aux));
	close(fd);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(aux[0]); i++)
		if (aux[i].a_type == AT_BASE)
			return aux[i].a_un.a_val;
	return 0;
}

enum step { STEP_ON, STEP_MAPPED, STEP_NO_LIBC, STEP_ENDED };

/* Let the stopped child run to its next system call's beginning or end; *status is of waitpid(2).
 */
static enum step next_syscall(pid_t pid, int *status)
{
	int sig = 0;

	for (;;) {
		if (ptrace(PTRACE_SYSCALL, pid, NULL, (void *)(intptr_t)sig) ||
		    waitpid(pid, status, 0) != pid)
			return STEP_NO_LIBC;
		if (!WIFSTOPPED(*status))
			return STEP_ENDED;
		if (WSTOPSIG(*status) == (SIGTRAP | 0x80))
			return STEP_ON;
		sig = WSTOPSIG(*status) == SIGTRAP ? 0 : WSTOPSIG(*status);
	}
}

/* Look at the child in a system call: is the C library there, or has the loader left off? */
static enum step look(pid_t pid, const struct mlk_mapping *loader, struct maps *maps)
{
	struct user_regs_struct regs;
	const struct mlk_mapping *caller;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) || maps_read(maps, pid))
		return STEP_NO_LIBC;
	if (target_find_libc(maps))
		return STEP_MAPPED;
	caller = maps_find(maps, regs.rip);
	return caller && caller->inode == loader->inode ? STEP_ON : STEP_NO_LIBC;
}

/* Run the child until its C library is mapped, or it is certain that it never is. */
static enum step run_to_libc(pid_t pid, int *status)
{
	struct maps maps = {0};
	struct mlk_mapping loader = {0};
	const struct mlk_mapping *found;
	uint64_t base = loader_base(pid);
	enum step step = STEP_NO_LIBC;

	if (base && !maps_read(&maps, pid) && (found = maps_find(&maps, base)) != NULL) {
		loader = *found; /* its path goes with the table, and is not looked at */
		step = STEP_ON;
	}
	while (step == STEP_ON) {
		step = next_syscall(pid, status);
		if (step == STEP_ON)
			step = look(pid, &loader, &maps);
	}
	maps_release(&maps);
	return step;
}

int launch_start(char **argv, pid_t *pid, int *ended)
{
	int status = start(argv, pid);
	enum step step;

	if (status)
		return status;
	step = run_to_libc(*pid, ended);
	if (step == STEP_MAPPED)
		return 0;
	if (step == STEP_ENDED)
		return LAUNCH_ENDED;
	log_error(
		"cannot record '%s': it uses no shared C library (statically linked, or of another "
		"architecture), where mleak finds malloc",
		argv[0]);
	launch_abort(*pid);
	return EXIT_RECORD_FAILED;
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
