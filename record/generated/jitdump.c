/* jitdump.c - see jitdump.h */
#include "record/generated/jitdump.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/trace.h"

#define MAGIC	   0x4a695444u /* "JiTD", as the processor has numbers */
#define TEXT_BYTES ((size_t)4 << 20)

/* Kinds of records. */
enum { CODE_LOAD, CODE_MOVE, CODE_DEBUG_INFO };

/* The begin of each. */
struct record_header {
	uint32_t id, total_size;
	uint64_t timestamp;
};

/* What follows in a CODE_LOAD; the name, with its NUL, and the code are behind it. */
struct load {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

/* The same in a CODE_DEBUG_INFO with its first entry; the file's name, with its NUL, is behind it.
 */
struct debug_info {
	uint64_t code_addr, nr, addr;
	int32_t line, discriminator;
};

/* A record, or its begin if it is longer. */
struct record {
	struct record_header header;
	char body[sizeof(struct load) + MLK_MAX_STRING + 1];
};

static bool is_marker(const struct mlk_mapping *m)
{
	const char *slash = strrchr(m->path, '/'), *at;

	if (m->path[0] != '/' || !(m->perms & MLK_PERM_X) || m->offset ||
	    strncmp(slash, "/jit-", 5) != 0 || !isdigit((unsigned char)slash[5]))
		return false;
	at = slash + 5 + strspn(slash + 5, "0123456789");
	return !strcmp(at, ".dump") || !strcmp(at, ".dump (deleted)");
}

/* Nothing more is taken of the file; what was not, was not read in time. */
static void close_file(struct jitdump *j)
{
	struct stat st;

	if (!j->is_open)
		return;
	if (!j->is_broken && !fstat(j->fd, &st) && (uint64_t)st.st_size > j->offset) {
		j->source.left_out += (uint64_t)st.st_size - j->offset;
		name_source_problem(&j->source, "was replaced before all of it was read");
	}
	close(j->fd);
	j->is_open = false;
}

static void begin_file(struct jitdump *j)
{
	j->offset = 0;
	j->is_broken = false;
	j->place = (struct jitdump_place){0};
}

/* The file by its path: the process may have ended. */
static int open_by_path(const struct jitdump *j, const struct target *t)
{
	struct open_how how = {.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	int root = target_open_file(t, HELPER_ROOT), fd;

	if (root < 0)
		root = open("/", O_PATH | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, j->marker.path + 1, &how, sizeof(how));
	close(root);
	return fd;
}

/* Open what is mapped, and nothing else.  It is tried again before it is read. */
static void open_file(struct jitdump *j, const struct target *t)
{
	int fd = target_open_mapped(t, &j->marker);
	struct stat st;

	if (fd < 0)
		fd = open_by_path(j, t);
	if (fd < 0)
		return;
	j->is_open = !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == j->marker.inode;
	if (j->is_open)
		j->fd = fd;
	else
		close(fd);
}

/* Was the file @inode met before?  If not, and it is to be read now, it is noted. */
static bool is_known(struct jitdump *j, uint64_t inode)
{
	for (unsigned i = 0; i < j->nr_met; i++)
		if (j->met[i] == inode)
			return true;
	if (j->nr_met == JITDUMP_MAX_FILES) {
		name_source_problem(&j->source, "is not the only one: the process has too many");
		return true;
	}
	j->met[j->nr_met++] = inode;
	return false;
}

bool jitdump_meet(struct jitdump *j, const struct target *t, const struct mlk_mapping *m)
{
	char *path;

	if (!is_marker(m))
		return false;
	if (is_known(j, m->inode))
		return true;
	path = strdup(m->path);
	if (!path) {
		j->nr_met--;
		return true;
	}
	close_file(j);
	free((char *)j->marker.path);
	begin_file(j);
	j->marker = *m;
	j->marker.path = path;
	open_file(j, t);
	return true;
}

void jitdump_take_markers(struct jitdump *j, const struct target *t, struct maps *maps)
{
	size_t kept = 0;

	for (size_t i = 0; i < maps->nr; i++) {
		if (jitdump_meet(j, t, &maps->v[i]))
			free((char *)maps->v[i].path);
		else
			maps->v[kept++] = maps->v[i];
	}
	maps->nr = kept;
}

/* @bytes from the offset on are left out, for they are not of the format. */
static void leave_out(struct jitdump *j, uint64_t bytes)
{
	j->source.left_out += bytes;
	name_source_problem(&j->source, "has records that are none");
}

/* Nothing can be known of all that follows, or nothing more is taken, for @problem. */
static void give_up(struct jitdump *j, const char *problem)
{
	j->is_broken = true;
	name_source_problem(&j->source, problem);
}

/* Read the begin of the file, if it is there.  If it is another one than before, so is the file. */
static void read_begin(struct jitdump *j)
{
	struct jitdump_header header;

	if (pread(j->fd, &header, sizeof(header), 0) != sizeof(header))
		return;
	if (j->offset || j->is_broken) {
		if (!memcmp(&header, &j->header, sizeof(header)))
			return;
		begin_file(j);
		j->source.anew = true;
	}
	j->header = header;
	if (header.magic != MAGIC || header.total_size < sizeof(header))
		give_up(j, "has records that are none");
	else
		j->offset = header.total_size;
}

/* The name in the rest of a record, @len bytes at @at; NULL: it does not end there. */
static char *find_name(char *at, size_t len)
{
	char *end = memchr(at, '\0', len);

	return end && end > at && end - at <= MLK_MAX_STRING ? at : NULL;
}

/* Where the code whose record follows begins in its source. */
static bool take_place(struct jitdump *j, struct record *r, size_t len)
{
	struct debug_info info;
	const char *file;

	j->place.text[0] = '\0';
	if (len < sizeof(info.code_addr) + sizeof(info.nr))
		return false;
	memcpy(&info, r->body, len < sizeof(info) ? len : sizeof(info));
	if (!info.nr)
		return true;
	file = len > sizeof(info) ? find_name(r->body + sizeof(info), len - sizeof(info)) : NULL;
	if (!file)
		return false;
	j->place.addr = info.code_addr;
	if (info.line > 0 && !strchr(file, '\n') &&
	    snprintf(j->place.text, sizeof(j->place.text), "%s:%d", file, info.line) >=
		    (int)sizeof(j->place.text))
		j->place.text[0] = '\0';
	return true;
}

/* Append to @list the function of the record with @len bytes; its name is put at *@to, which has
 * room for it, and goes behind it.  Returns 1, 0: it is none, or -ENOMEM. */
static int take_load(struct jitdump *j, struct record *r, size_t len, bool no_files,
		     struct code_list *list, char **to)
{
	struct load load;
	const char *name;
	char *text = *to;
	int err;

	if (len <= sizeof(load))
		return 0;
	memcpy(&load, r->body, sizeof(load));
	name = find_name(r->body + sizeof(load), len - sizeof(load));
	if (!name || !load.code_size || load.code_size > UINT64_MAX - load.code_addr)
		return 0;
	/* V8's names have their places */
	if (j->place.text[0] && j->place.addr == load.code_addr && !code_list_place(name) &&
	    strlen(name) + 1 + strlen(j->place.text) <= MLK_MAX_STRING)
		*to = stpcpy(stpcpy(stpcpy(text, name), " "), j->place.text) + 1;
	else
		*to = stpcpy(text, name) + 1;
	j->place.text[0] = '\0';
	j->names += (uint64_t)(*to - text);
	err = code_list_add(list, load.code_addr, load.code_size, text, no_files);
	return err ? err : 1;
}

/* Take the record @r, of whose body @len bytes were read. */
static int take_record(struct jitdump *j, struct record *r, size_t len, bool no_files,
		       struct code_list *list, char **to)
{
	int taken = 1;

	if (r->header.id == CODE_LOAD)
		taken = take_load(j, r, len, no_files, list, to);
	else if (r->header.id == CODE_DEBUG_INFO)
		taken = take_place(j, r, len);
	else if (r->header.id == CODE_MOVE) {
		j->source.left_out += r->header.total_size;
		name_source_problem(&j->source, "tells of code that was moved");
	}
	if (!taken)
		leave_out(j, r->header.total_size);
	return taken < 0 ? taken : 0;
}

/* Read the next record of the file of @size bytes into @r, or its begin.  Returns the bytes of its
 * body that were read, or -1: it is not there yet, or none. */
static ssize_t read_record(struct jitdump *j, struct record *r, uint64_t size)
{
	ssize_t len = pread(j->fd, r, sizeof(*r), (off_t)j->offset);
	size_t total;

	if (len < (ssize_t)sizeof(r->header))
		return -1;
	total = r->header.total_size;
	if (total < sizeof(r->header)) {
		give_up(j, "has records that are none");
		return -1;
	}
	if (total > size - j->offset)
		return -1;
	return (ssize_t)(((size_t)len < total ? (size_t)len : total) - sizeof(r->header));
}

/* Take records of the file of @size bytes into @list, and their names to @to, TEXT_BYTES. */
static int take_records(struct jitdump *j, uint64_t size, bool no_files, struct code_list *list,
			char *to, bool *more)
{
	const char *end = to + TEXT_BYTES - (MLK_MAX_STRING + 1);
	struct record r;
	ssize_t len;
	int err = 0;

	for (uint32_t i = 0; !err && (len = read_record(j, &r, size)) >= 0; i++) {
		*more = i == JITDUMP_STEP || to > end;
		if (*more)
			break;
		if (j->nr == JITDUMP_MAX_RECORDS || j->names >= JITDUMP_MAX_NAMES) {
			give_up(j, "has more than 4,194,304 records, or 64 MiB of names");
			break;
		}
		err = take_record(j, &r, (size_t)len, no_files, list, &to);
		j->offset += r.header.total_size;
		j->nr++;
	}
	return err;
}

/* Count what is not taken of the file of @size bytes. */
static void count_rest(struct jitdump *j, uint64_t size, bool more, bool last)
{
	j->source.beyond = 0;
	if (size <= j->offset || more || !(j->is_broken || last))
		return;
	j->source.beyond = size - j->offset;
	if (!j->is_broken)
		name_source_problem(&j->source, "ends within a record");
}

int jitdump_read(struct jitdump *j, const struct target *t, const struct jitdump_how *how,
		 struct code_list *list, char **text, bool *more)
{
	struct stat st;
	uint64_t size;
	int err = 0;

	*text = NULL;
	*more = false;
	if (!j->marker.path)
		return 0;
	if (!j->is_open)
		open_file(j, t);
	if (!j->is_open || fstat(j->fd, &st)) {
		name_source_problem(&j->source, "could not be opened");
		return 0;
	}
	size = (uint64_t)st.st_size;
	if (size < j->offset) {
		begin_file(j);
		j->source.anew = true;
	}
	read_begin(j);
	if (!j->is_broken && j->offset && j->offset < size) {
		*text = malloc(TEXT_BYTES);
		err = *text ? take_records(j, size, how->no_files, list, *text, more) : -ENOMEM;
	}
	count_rest(j, size, *more, how->last);
	return err;
}

pid_t jitdump_number(const struct jitdump *j)
{
	return j->marker.path
		       ? (pid_t)strtol(strrchr(j->marker.path, '/') + strlen("/jit-"), NULL, 10)
		       : 0;
}

void jitdump_begin_trace(struct jitdump *j)
{
	begin_file(j);
	j->nr = j->names = 0;
	name_source_begin_trace(&j->source);
}

void jitdump_restart(struct jitdump *j)
{
	begin_file(j);
}

void jitdump_execed(struct jitdump *j)
{
	jitdump_release(j);
	begin_file(j);
	j->nr_met = 0;
	j->source.anew = true;
}

void jitdump_release(struct jitdump *j)
{
	close_file(j);
	free((char *)j->marker.path);
	j->marker = (struct mlk_mapping){0};
}
