/* privileges.c - capget(2) and capset(2), which are of one thread */
#include "record/privilege/privileges.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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

void privileges_keep_in_thread(uint64_t caps)
{
	struct capabilities c = read_caps();
	unsigned int cap;

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	/* What exec could give, which is not called any more.  Refused without CAP_SETPCAP, but
	 * then nothing can be got back either. */
	for (cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	c.effective &= caps;
	c.permitted &= caps;
	c.inheritable = 0; /* and with it the ambient set */
	if (write_caps(&c))
		log_warn("cannot give up capabilities: %s", strerror(errno));
}

static void keep_in_thread(void *arg)
{
	privileges_keep_in_thread(*(const uint64_t *)arg);
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
	if (later->injects)
		caps |= bit(CAP_DAC_OVERRIDE);
	if (later->stops)
		caps |= bit(CAP_SYS_NICE);
	/* Without that, the kernel lets a process examine another if it has all of its
	 * capabilities. */
	if (later->preload && !(read_caps().permitted & bit(CAP_SYS_PTRACE)))
		return read_caps().permitted;
	return caps & read_caps().permitted;
}

void privileges_reduce(uint64_t caps, struct mlk_writer *writer)
{
	privileges_keep_in_thread(caps);
	mlk_writer_in_thread(writer, keep_in_thread, &caps);
}

/* Landlock by raw system calls: libc has no calls for it, and the headers of Debian 12 lack what
 * came after Linux 6.1.  The same number on all architectures. */
#define CREATE_RULESET 444
#define ADD_RULE       445
#define RESTRICT_SELF  446

#define CREATE_RULESET_VERSION 1u

/* struct landlock_ruleset_attr of Linux 6.12; older kernels read as much as they know. */
struct ruleset {
	uint64_t fs;	 /* LANDLOCK_ACCESS_FS_... */
	uint64_t net;	 /* LANDLOCK_ACCESS_NET_..., from version 4 of its interface on */
	uint64_t scoped; /* LANDLOCK_SCOPE_..., from version 6 on */
};

#define FS_EXECUTE	  (1u << 0)
#define FS_WRITE_FILE	  (1u << 1)
#define FS_REMOVE_FILE	  (1u << 5)
#define FS_MAKE_REG	  (1u << 8)
#define RULE_PATH_BENEATH 1
#define FS_CHANGES	  0x1ff0u /* bits 4 to 12: remove, and make files of all kinds */
#define FS_REFER	  (1u << 13)
#define FS_TRUNCATE	  (1u << 14)
#define FS_IOCTL_DEV	  (1u << 15)
#define NET_TCP		  3u
#define SCOPE_ALL	  3u /* abstract sockets, signals */

/* All of it that version @abi of the interface knows.  Returns the size of the part to hand over.
 */
static size_t fill_ruleset(struct ruleset *r, long abi)
{
	*r = (struct ruleset){.fs = FS_EXECUTE | FS_WRITE_FILE | FS_CHANGES};
	if (abi >= 2)
		r->fs |= FS_REFER;
	if (abi >= 3)
		r->fs |= FS_TRUNCATE;
	if (abi >= 4)
		r->net = NET_TCP;
	if (abi >= 5)
		r->fs |= FS_IOCTL_DEV;
	if (abi >= 6)
		r->scoped = SCOPE_ALL;
	return abi >= 6 ? sizeof(*r) : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
}

/* struct landlock_path_beneath_attr */
struct path_rule {
	uint64_t allowed;
	int32_t folder;
} __attribute__((packed));

/* Files may be made and removed in @folder. */
static int allow_folder(int rules, int folder)
{
	const struct path_rule rule = {FS_WRITE_FILE | FS_REMOVE_FILE | FS_MAKE_REG, folder};

	if (folder < 0)
		return 0;
	return syscall(ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0) ? -errno : 0;
}

int sandbox_enter(int folder)
{
	long abi = syscall(CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
	struct ruleset rules;
	int fd, err;

	if (abi < 0)
		return -errno;
	/* no rules: what is named is allowed nowhere */
	fd = (int)syscall(CREATE_RULESET, &rules, fill_ruleset(&rules, abi), 0);
	if (fd < 0)
		return -errno;
	err = allow_folder(fd, folder);
	if (!err && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(RESTRICT_SELF, fd, 0)))
		err = -errno;
	close(fd);
	return err;
}

static void enter_in_thread(void *arg)
{
	sandbox_enter(*(const int *)arg);
}

int sandbox_enter_both(struct mlk_writer *writer, int folder)
{
	mlk_writer_in_thread(writer, enter_in_thread, &folder);
	return sandbox_enter(folder);
}
