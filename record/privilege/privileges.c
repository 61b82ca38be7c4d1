/* privileges.c - capget(2) and capset(2), which are of one thread */
#include "record/privilege/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mleak.h"

/* Both halves as one number: bit CAP_... */
struct capabilities {
	uint64_t effective, permitted, inheritable;
};

static struct capabilities read_caps(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	syscall(SYS_capget, &header, data);
	return (struct capabilities){
		.effective = data[0].effective | (uint64_t)data[1].effective << 32,
		.permitted = data[0].permitted | (uint64_t)data[1].permitted << 32,
		.inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32,
	};
}

static int write_caps(const struct capabilities *c)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){
			.effective = (uint32_t)(c->effective >> 32 * i),
			.permitted = (uint32_t)(c->permitted >> 32 * i),
			.inheritable = (uint32_t)(c->inheritable >> 32 * i),
		};
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static uint64_t bit(unsigned int cap)
{
	return (uint64_t)1 << cap;
}

bool privileges_has(unsigned int cap)
{
	return (read_caps().effective & bit(cap)) != 0;
}

const char *privileges_no_ptrace(void)
{
	char scope = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, &scope, 1) != 1)
			scope = '0';
		close(fd);
	}
	if (scope == '3')
		return "the system setting kernel.yama.ptrace_scope allows it to nobody";
	if (scope != '0' && !privileges_has(CAP_SYS_PTRACE))
		return "the system setting kernel.yama.ptrace_scope allows it only with "
		       "CAP_SYS_PTRACE";
	return "another process traces it, or CAP_SYS_PTRACE is missing";
}

/* Of this thread keep what is in @keep, at most. */
static void keep(uint64_t keep)
{
	struct capabilities c = read_caps();
	unsigned int cap;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* What exec could give, which is not called any more.  Refused without CAP_SETPCAP, but
	 * then nothing can be got back either. */
	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	c.effective &= keep;
	c.permitted &= keep;
	c.inheritable = 0; /* and with it the ambient set */
	if (write_caps(&c))
		log_warn("cannot give up capabilities: %s", strerror(errno));
}

static void keep_in_thread(void *arg)
{
	keep(*(const uint64_t *)arg);
}

static void keep_in_all(uint64_t caps, struct mlk_writer *writer)
{
	keep(caps);
	mlk_writer_in_thread(writer, keep_in_thread, &caps);
}

uint64_t privileges_needed(const struct privileges_later *later)
{
	/* Probes are put in anew; files are opened by /proc/PID, in other users' folders too. */
	uint64_t caps = bit(CAP_BPF) | bit(CAP_PERFMON) | bit(CAP_SYS_PTRACE) |
			bit(CAP_DAC_READ_SEARCH) | bit(CAP_CHECKPOINT_RESTORE);

	if (later->preload)
		caps &= ~(bit(CAP_BPF) | bit(CAP_PERFMON));
	if (later->perf)
		caps |= bit(CAP_SYS_ADMIN);
	if (later->started)
		caps |= bit(CAP_KILL);
	/* Without that, the kernel lets a process examine another if it has all of its
	 * capabilities. */
	if (later->preload && !(read_caps().permitted & bit(CAP_SYS_PTRACE)))
		return read_caps().permitted;
	return caps & read_caps().permitted;
}

void privileges_keep_in_thread(uint64_t caps)
{
	keep(caps);
}

void privileges_reduce(uint64_t caps, struct mlk_writer *writer)
{
	keep_in_all(caps, writer);
}
