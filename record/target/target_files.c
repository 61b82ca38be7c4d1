/* target_files.c - a target's files and memory: what the kernel refuses to us, by the helper */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/target/as_owner.h"
#include "record/target/link_map.h"
#include "record/target/target.h"

static bool is_denied(int err)
{
	return err == -EACCES || err == -EPERM;
}

/* Is the helper, where there is one, to try what failed with @err? */
static bool is_refused(const struct target *t, int err)
{
	return t->helper && is_denied(err);
}

static struct helper_task task_of(const struct target *t)
{
	return (struct helper_task){.pid = t->pid, .task = t->task};
}

/* What was opened by the process's number as @fd, if that cannot have been another's by then: it is
 * bound to whom it was opened of.  Else -errno. */
static int own_file(const struct target *t, int fd)
{
	if (fd < 0)
		return -errno;
	if (!target_is_reaped(t))
		return fd;
	close(fd);
	return -ESRCH;
}

/* Open @path, of the process; where there is no helper that does that, as its owner if need be. */
static int open_file(const struct target *t, const char *path, int flags)
{
	int fd = own_file(t, open(path, flags | O_CLOEXEC));

	if (t->helper || !is_denied(fd))
		return fd;
	fd = as_owner_open(t->task, path, flags | O_CLOEXEC);
	return fd < 0 ? fd : own_file(t, fd);
}

int target_open_file(const struct target *t, enum helper_file file)
{
	static const struct {
		const char *name;
		int flags;
	} files[] = {[HELPER_MAPS] = {"maps", O_RDONLY},
		     [HELPER_AUXV] = {"auxv", O_RDONLY},
		     [HELPER_STATUS] = {"status", O_RDONLY},
		     [HELPER_ROLLUP] = {"smaps_rollup", O_RDONLY},
		     [HELPER_SMAPS] = {"smaps", O_RDONLY},
		     [HELPER_MEM] = {"mem", O_RDONLY},
		     [HELPER_PAGEMAP] = {"pagemap", O_RDONLY},
		     [HELPER_EXE] = {"exe", O_PATH},
		     [HELPER_ROOT] = {"root", O_PATH}};
	const struct helper_task of = task_of(t);
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)t->task, files[file].name);
	fd = open_file(t, path, files[file].flags);
	if (is_refused(t, fd))
		return helper_open(t->helper, &of, file);
	/* with the mount option hidepid=2 it looks as if there were no such process */
	if (file == HELPER_STATUS && fd == -ENOENT && t->helper && !target_is_reaped(t))
		return helper_open(t->helper, &of, file);
	return fd;
}

int target_read_syscall(const struct target *t, pid_t tid, char *text, size_t size)
{
	const struct helper_task of = {.pid = t->pid, .task = tid};
	int fd, err;
	ssize_t len;

	snprintf(text, size, "/proc/%d/syscall", (int)tid);
	fd = own_file(t, open(text, O_RDONLY | O_CLOEXEC));
	text[0] = '\0';
	if (fd < 0)
		return fd;
	/* not when it is opened, but when it is read the kernel asks who we are */
	len = read(fd, text, size - 1);
	err = len < 0 ? -errno : 0;
	close(fd);
	if (is_refused(t, err))
		return helper_syscall(t->helper, &of, text, size);
	if (is_denied(err)) {
		snprintf(text, size, "/proc/%d/syscall", (int)tid);
		len = as_owner_read(tid, text, text, size - 1);
		err = len < 0 ? (int)len : 0;
	}
	text[len > 0 ? len : 0] = '\0';
	return err;
}

int target_stat(const struct target *t, enum helper_file file, const char *path, struct stat *st)
{
	int fd = target_open_file(t, file), err;

	if (fd < 0)
		return fd;
	while (*path == '/')
		path++;
	err = fstatat(fd, path, st, AT_EMPTY_PATH) ? -errno : 0;
	close(fd);
	return err;
}

int target_read_maps(const struct target *t, struct maps *maps)
{
	int fd = target_open_file(t, HELPER_MAPS), err;

	if (fd < 0)
		return fd;
	err = maps_read_fd(maps, fd);
	close(fd);
	return err;
}

void target_path(const struct target *t, const struct mlk_mapping *m, char *path, size_t size)
{
	char root[64];
	struct stat ours, theirs;
	bool same;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)t->task);
	same = stat("/", &ours) || target_stat(t, HELPER_ROOT, "", &theirs) ||
	       (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino);
	snprintf(path, size, "%s%s", same ? "" : root, m->path);
}

/* Open @path if it is the file that @m maps. */
static int open_if_same(const char *path, const struct mlk_mapping *m)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return -errno;
	/* Not the device: some file systems (btrfs, overlayfs) show another one here than in maps.
	 */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode)
		return fd;
	close(fd);
	return -ESTALE;
}

/* As target_open_mapped(), by ourselves. */
static int open_mapped(const struct target *t, const struct mlk_mapping *m)
{
	char path[PATH_MAX + 64];
	struct stat st;
	int fd;

	/* The kernel's own link to the mapped file; but by now another may be mapped at that place.
	 */
	snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)t->task,
		 m->start, m->end);
	fd = own_file(t, open(path, O_RDONLY | O_CLOEXEC));
	if (fd >= 0 && !fstat(fd, &st) && st.st_ino == m->inode)
		return fd;
	if (fd >= 0)
		close(fd);
	if (m->path[0] != '/')
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)t->task, m->path);
	fd = open_if_same(path, m);
	return fd >= 0 ? fd : open_if_same(m->path, m);
}

int target_open_mapped(const struct target *t, const struct mlk_mapping *m)
{
	const struct helper_task of = task_of(t);
	int fd = open_mapped(t, m), asked;
	struct stat st;

	/* Nor can the reason be trusted where not even the link could be read. */
	if (fd >= 0 || !t->helper)
		return fd;
	asked = helper_open_mapped(t->helper, &of, m);
	if (asked < 0)
		return fd;
	if (!fstat(asked, &st) && st.st_ino == m->inode)
		return asked;
	close(asked);
	return -ESTALE;
}

/* "libc.so.6", "libc-2.31.so", "ld-musl-x86_64.so.1" (loader and libc in one), with or without "
 * (deleted)". */
bool target_is_libc(const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	return !strncmp(base, "libc.so", 7) || !strncmp(base, "ld-musl-", 8) ||
	       (!strncmp(base, "libc-2.", 7) && strstr(base, ".so"));
}

uint64_t target_auxv(const struct target *t, uint64_t type)
{
	Elf64_auxv_t aux[64];
	ssize_t n;
	int fd = target_open_file(t, HELPER_AUXV);

	if (fd < 0)
		return auxv_guess(t, type);
	n = read(fd, aux, sizeof(aux));
	close(fd);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(aux[0]); i++)
		if (aux[i].a_type == type)
			return aux[i].a_un.a_val;
	return 0;
}

/* As target_read_memory(), from the file of its memory, if that can be opened. */
static int read_opened(const struct target *t, uint64_t addr, void *to, size_t len)
{
	int fd = target_open_file(t, HELPER_MEM);
	ssize_t n;

	if (fd < 0)
		return fd;
	n = pread(fd, to, len, (off_t)addr);
	close(fd);
	return n == (ssize_t)len ? 0 : -EFAULT;
}

/* As target_read_memory(), by the helper, which reads so much at once. */
static int read_by_helper(const struct target *t, uint64_t addr, uint8_t *to, size_t len)
{
	const struct helper_task of = task_of(t);
	int err = len > HELPER_MAX_READ ? read_opened(t, addr, to, len) : -EACCES;

	if (!is_denied(err))
		return err;
	err = 0;
	for (size_t at = 0, piece; at < len && !err; at += piece) {
		piece = len - at < HELPER_MAX_READ ? len - at : HELPER_MAX_READ;
		err = helper_read(t->helper, &of, addr + at, to + at, piece);
	}
	return err;
}

int target_read_memory(const struct target *t, uint64_t addr, void *to, size_t len)
{
	struct iovec local = {.iov_base = to, .iov_len = len};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
	/* not /proc/PID/mem: it is its owner's file, and CAP_SYS_PTRACE does not open those */
	ssize_t n = process_vm_readv(t->task, &local, 1, &remote, 1, 0);
	int err = n < 0 ? -errno : n == (ssize_t)len ? 0 : -EFAULT;

	if (!err && target_is_reaped(t))
		return -ESRCH; /* it may have been another's memory */
	if (is_refused(t, err))
		return read_by_helper(t, addr, to, len);
	return is_denied(err) ? read_opened(t, addr, to, len) : err;
}
