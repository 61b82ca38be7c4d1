/* remote_code.c - see remote_code.h */
#include "record/inject/remote/remote_code.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/inject/remote/names.h"

#define CHUNK	 (UINT64_C(1) << 20)
#define OVERLAP	 16 /* bytes: more than the longest sequence */
#define USER_END (UINT64_C(1) << 47)

static const uint8_t call[] = {0x0f, 0x05, 0xc3};
static const uint8_t pop[] = {0x58, 0xc3};

/* Note in *@at the address of the @nr bytes @wanted, if it is not known yet, and they are among the
 * @len bytes at @addr. */
static void look(uint64_t *at, const uint8_t *wanted, size_t nr, uint64_t addr,
		 const uint8_t *bytes, size_t len)
{
	const uint8_t *there = *at ? NULL : memmem(bytes, len, wanted, nr);

	if (there)
		*at = addr + (uint64_t)(there - bytes);
}

static bool is_complete(const struct remote_code *code)
{
	return code->call && code->pop;
}

/* What cannot be read of @m has nothing for us. */
static void look_through(struct remote_code *code, int fd, const struct mlk_mapping *m,
			 uint8_t *bytes)
{
	for (uint64_t at = m->start; at < m->end && !is_complete(code); at += CHUNK - OVERLAP) {
		uint64_t len = m->end - at < CHUNK ? m->end - at : CHUNK;
		ssize_t n = pread(fd, bytes, len, (off_t)at);

		if (n > 0) {
			look(&code->call, call, sizeof(call), at, bytes, (size_t)n);
			look(&code->pop, pop, sizeof(pop), at, bytes, (size_t)n);
		}
		if (len < CHUNK)
			return;
	}
}

/* What we have put there may be unmapped by the calls that the instructions are for. */
static bool is_ours(const struct mlk_mapping *m)
{
	return !strcmp(m->path, INJECT_SHOWN(INJECT_CODE_NAME));
}

int remote_code_find(struct remote_code *code, pid_t pid, const struct maps *maps)
{
	uint8_t *bytes = malloc(CHUNK);
	char path[64];
	int fd, err;

	if (!bytes)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	err = fd >= 0 ? 0 : errno == ENOENT ? -ESRCH : -errno;
	*code = (struct remote_code){0};
	/* The vDSO and the C library are among the last: they stay, and are not large. */
	for (size_t i = maps->nr; fd >= 0 && i-- > 0 && !is_complete(code);)
		if (maps->v[i].perms & MLK_PERM_X && maps->v[i].end <= USER_END &&
		    !is_ours(&maps->v[i]))
			look_through(code, fd, &maps->v[i], bytes);
	if (fd >= 0)
		close(fd);
	free(bytes);
	if (!err && !is_complete(code))
		err = -ENOTSUP;
	return err;
}

static bool has_bytes(pid_t tid, uint64_t at, const uint8_t *bytes, size_t len)
{
	uint8_t there[sizeof(call)];
	struct iovec to = {there, len}, from = {(void *)(uintptr_t)at, len};

	return process_vm_readv(tid, &to, 1, &from, 1, 0) == (ssize_t)len &&
	       !memcmp(there, bytes, len);
}

bool remote_code_is_there(const struct remote_code *code, pid_t tid)
{
	return has_bytes(tid, code->call, call, sizeof(call)) &&
	       has_bytes(tid, code->pop, pop, sizeof(pop));
}
