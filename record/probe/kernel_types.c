/* kernel_types.c - see kernel_types.h, and the kernel's Documentation/bpf/btf.rst
 *
 * A type that is asked for by its name is copied with all its members.  What these are made of is
 * copied as far as their sizes and those parts need it that have no name of their own; what a
 * pointer points to is not.
 */
#include "record/probe/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "array.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"
#define DEEPEST	   64 /* structures within structures, and what they are called */
#define NAME_BITS  4096

/* Bytes that grow. */
struct bytes {
	uint8_t *v;
	size_t nr, room;
};

/* A name without what comes behind "___", which is a flavour of the type. */
struct type_name {
	const char *text;
	size_t len;
	uint32_t hash;
};

struct reduction {
	const uint8_t *types; /* of the kernel */
	size_t types_len;
	const char *strings;
	size_t strings_len;
	uint32_t *at; /* by number: where in types; that of 0 is not used */
	size_t nr, room;
	uint32_t *copied; /* by number: its new one; 0: it has none */

	struct type_name *names; /* of our types */
	size_t nr_names, room_names;
	uint64_t bits[NAME_BITS / 64]; /* a bit for each name, by its hash */

	struct bytes out, out_strings;
	uint32_t out_nr;
	int err;
};

static struct type_name name_of(const char *text)
{
	const char *flavour = strstr(text, "___");
	struct type_name name = {.text = text,
				 .len = flavour ? (size_t)(flavour - text) : strlen(text)};

	for (size_t i = 0; i < name.len; i++)
		name.hash = name.hash * 31 + (uint8_t)text[i];
	name.hash %= NAME_BITS;
	return name;
}

static bool is_named_kind(uint32_t kind)
{
	return kind == BTF_KIND_STRUCT || kind == BTF_KIND_UNION || kind == BTF_KIND_ENUM ||
	       kind == BTF_KIND_ENUM64;
}

static int note_names(struct reduction *r, const struct btf *ours)
{
	for (uint32_t id = 1; id < btf__type_cnt(ours); id++) {
		const struct btf_type *t = btf__type_by_id(ours, id);
		struct type_name name = name_of(btf__name_by_offset(ours, t->name_off));

		if (!is_named_kind(btf_kind(t)) || !name.len)
			continue;
		if (grow_array(&r->names, r->nr_names, &r->room_names, sizeof(*r->names)))
			return -ENOMEM;
		r->names[r->nr_names++] = name;
		r->bits[name.hash / 64] |= 1ull << name.hash % 64;
	}
	return 0;
}

static bool is_our_name(const struct reduction *r, const char *text)
{
	struct type_name name = name_of(text);

	for (size_t i = 0; r->bits[name.hash / 64] >> name.hash % 64 & 1 && i < r->nr_names; i++)
		if (r->names[i].len == name.len && !memcmp(r->names[i].text, text, name.len))
			return true;
	return false;
}

/* Bytes that follow the head of a type.  -1: of a kind that is not known. */
static long tail_of(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return btf_vlen(t) * 12l;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return btf_vlen(t) * 8l;
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	default:
		return -1;
	}
}

/* NULL: there is none of that number. */
static const struct btf_type *type_at(const struct reduction *r, uint32_t id)
{
	return id && id < r->nr ? (const void *)(r->types + r->at[id]) : NULL;
}

static const char *name_at(const struct reduction *r, uint32_t offset)
{
	return offset < r->strings_len ? r->strings + offset : "";
}

/* Find where each type is. */
static int index_types(struct reduction *r)
{
	size_t at = 0;

	for (r->nr = 0; !r->nr || at < r->types_len; r->nr++) {
		const struct btf_type *t = (const void *)(r->types + at);

		if (grow_array(&r->at, r->nr, &r->room, sizeof(*r->at)))
			return -ENOMEM;
		r->at[r->nr] = (uint32_t)at;
		if (!r->nr)
			continue; /* no type has the number 0 */
		if (r->types_len - at < sizeof(*t) || tail_of(t) < 0 ||
		    r->types_len - at - sizeof(*t) < (size_t)tail_of(t))
			return -EBADMSG;
		at += sizeof(*t) + (size_t)tail_of(t);
	}
	r->copied = calloc(r->nr, sizeof(*r->copied));
	return r->copied ? 0 : -ENOMEM;
}

/* Add @len bytes.  Returns where they are; 0, with r->err set: there is no memory. */
static size_t put(struct reduction *r, struct bytes *to, const void *bytes, size_t len)
{
	size_t at = to->nr;

	if (!len)
		return at;
	if (to->room - to->nr < len) {
		size_t room = (to->room + len) * 2 + 4096;
		uint8_t *v = realloc(to->v, room);

		if (!v) {
			r->err = -ENOMEM;
			return 0;
		}
		to->v = v;
		to->room = room;
	}
	memcpy(to->v + at, bytes, len);
	to->nr += len;
	return at;
}

static uint32_t put_name(struct reduction *r, uint32_t offset)
{
	const char *name = name_at(r, offset);

	return name[0] ? (uint32_t)put(r, &r->out_strings, name, strlen(name) + 1) : 0;
}

/* Add a type with the head @t, whose name is the kernel's, and @len more bytes.  Returns its
 * number.
 */
static uint32_t put_type(struct reduction *r, const struct btf_type *t, const void *tail,
			 size_t len)
{
	struct btf_type head = *t;

	head.name_off = put_name(r, t->name_off);
	put(r, &r->out, &head, sizeof(head));
	put(r, &r->out, tail, len);
	return ++r->out_nr;
}

static uint32_t copy_type(struct reduction *r, uint32_t id, int depth);

/* A structure or union, with all members. */
static uint32_t copy_members(struct reduction *r, const struct btf_type *t, int depth)
{
	size_t nr = btf_vlen(t);
	struct btf_member *members = malloc((nr + 1) * sizeof(*members));
	uint32_t id;

	if (!members) {
		r->err = -ENOMEM;
		return 0;
	}
	for (size_t i = 0; i < nr; i++) {
		members[i] = btf_members(t)[i];
		members[i].name_off = put_name(r, members[i].name_off);
		members[i].type = copy_type(r, members[i].type, depth + 1);
	}
	id = put_type(r, t, members, nr * sizeof(*members));
	free(members);
	return id;
}

/* An enumeration, with the names of its values. */
static uint32_t copy_values(struct reduction *r, const struct btf_type *t)
{
	size_t each =
		btf_kind(t) == BTF_KIND_ENUM ? sizeof(struct btf_enum) : sizeof(struct btf_enum64);
	uint32_t id = put_type(r, t, t + 1, btf_vlen(t) * each);

	for (size_t i = 0; !r->err && i < btf_vlen(t); i++) {
		/* the name comes first in either */
		uint8_t *value = r->out.v + r->out.nr - (btf_vlen(t) - i) * each;
		uint32_t name;

		memcpy(&name, value, sizeof(name));
		name = put_name(r, name);
		memcpy(value, &name, sizeof(name));
	}
	return id;
}

/* One that nobody asks for by its name: only how large it is. */
static uint32_t copy_size(struct reduction *r, const struct btf_type *t)
{
	struct btf_type head = {
		.name_off = t->name_off, .info = btf_kind(t) << 24, .size = t->size};

	return put_type(r, &head, NULL, 0);
}

static uint32_t copy_array(struct reduction *r, const struct btf_type *t, int depth)
{
	struct btf_array array = *btf_array(t);

	array.type = copy_type(r, array.type, depth + 1);
	array.index_type = copy_type(r, array.index_type, depth + 1);
	return put_type(r, t, &array, sizeof(array));
}

/* Another name or a qualifier of a type; or a pointer, to nothing. */
static uint32_t copy_reference(struct reduction *r, const struct btf_type *t, int depth)
{
	struct btf_type head = *t;

	head.type = btf_kind(t) == BTF_KIND_PTR ? 0 : copy_type(r, t->type, depth + 1);
	return put_type(r, &head, NULL, 0);
}

static bool is_wanted(const struct reduction *r, const struct btf_type *t)
{
	const char *name = name_at(r, t->name_off);

	return !name[0] || is_our_name(r, name);
}

static uint32_t copy_new(struct reduction *r, const struct btf_type *t, int depth)
{
	switch (btf_kind(t)) {
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return is_wanted(r, t) ? copy_members(r, t, depth) : copy_size(r, t);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return is_wanted(r, t) ? copy_values(r, t) : copy_size(r, t);
	case BTF_KIND_ARRAY:
		return copy_array(r, t, depth);
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_FWD:
		return put_type(r, t, t + 1, (size_t)tail_of(t));
	case BTF_KIND_PTR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return copy_reference(r, t, depth);
	default: /* none of what a member can be */
		r->err = -EBADMSG;
		return 0;
	}
}

/* Copy the kernel's type @id, unless it was.  Returns its new number. */
static uint32_t copy_type(struct reduction *r, uint32_t id, int depth)
{
	const struct btf_type *t = type_at(r, id);

	if (!id || r->err)
		return 0;
	if (!t || depth > DEEPEST) {
		r->err = -EBADMSG;
		return 0;
	}
	if (!r->copied[id])
		r->copied[id] = copy_new(r, t, depth);
	return r->copied[id];
}

static void copy_wanted(struct reduction *r)
{
	for (uint32_t id = 1; id < r->nr && !r->err; id++) {
		const struct btf_type *t = type_at(r, id);

		if (is_named_kind(btf_kind(t)) && name_at(r, t->name_off)[0] && is_wanted(r, t))
			copy_type(r, id, 0);
	}
}

/* Find the two parts of the @len bytes at @kernel. */
static int find_parts(struct reduction *r, const void *kernel, size_t len)
{
	const struct btf_header *h = kernel;
	size_t room;

	if (len < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len < sizeof(*h) ||
	    h->hdr_len > len || h->hdr_len % 4 || h->type_off % 4)
		return -EBADMSG;
	room = len - h->hdr_len;
	if (h->type_off > room || h->type_len > room - h->type_off || h->str_off > room ||
	    h->str_len > room - h->str_off)
		return -EBADMSG;
	r->types = (const uint8_t *)kernel + h->hdr_len + h->type_off;
	r->types_len = h->type_len;
	r->strings = (const char *)kernel + h->hdr_len + h->str_off;
	r->strings_len = h->str_len;
	return r->strings_len && !r->strings[r->strings_len - 1] ? 0 : -EBADMSG;
}

static int write_all(int fd, const void *bytes, size_t len)
{
	return len && write(fd, bytes, len) != (ssize_t)len ? -EIO : 0;
}

/* What was copied. */
static int write_file(const struct reduction *r, int fd)
{
	struct btf_header h = {.magic = BTF_MAGIC,
			       .version = BTF_VERSION,
			       .hdr_len = sizeof(h),
			       .type_len = (uint32_t)r->out.nr,
			       .str_off = (uint32_t)r->out.nr,
			       .str_len = (uint32_t)r->out_strings.nr};
	int err = write_all(fd, &h, sizeof(h));

	if (!err)
		err = write_all(fd, r->out.v, r->out.nr);
	return err ? err : write_all(fd, r->out_strings.v, r->out_strings.nr);
}

int kernel_types_reduce(int fd, const void *kernel, size_t len, const struct btf *ours)
{
	struct reduction r = {0};

	r.err = find_parts(&r, kernel, len);
	if (!r.err)
		r.err = index_types(&r);
	if (!r.err)
		r.err = note_names(&r, ours);
	if (!r.err) {
		put(&r, &r.out_strings, "", 1);
		copy_wanted(&r);
	}
	if (!r.err)
		r.err = write_file(&r, fd);
	free(r.at);
	free(r.copied);
	free(r.names);
	free(r.out.v);
	free(r.out_strings.v);
	return r.err;
}

/* Before Linux 6.16 it cannot be mapped.  A read of such a file is of a page at most. */
static void *read_all(int fd, size_t len)
{
	uint8_t *bytes = malloc(len);
	size_t done = 0;
	ssize_t n = 1;

	for (; bytes && done < len && n > 0; done += n > 0 ? (size_t)n : 0)
		n = read(fd, bytes + done, len - done);
	if (done == len)
		return bytes;
	free(bytes);
	return NULL;
}

int kernel_types_write(int fd, const struct btf *ours)
{
	int from = open(KERNEL_BTF, O_RDONLY | O_CLOEXEC), err = from < 0 ? -errno : 0;
	void *map, *bytes;
	struct stat st;
	size_t len;

	if (!err && fstat(from, &st))
		err = -errno;
	if (err) {
		if (from >= 0)
			close(from);
		return err;
	}
	len = (size_t)st.st_size;
	map = mmap(NULL, len, PROT_READ, MAP_PRIVATE, from, 0);
	bytes = map == MAP_FAILED ? read_all(from, len) : map;
	err = bytes ? kernel_types_reduce(fd, bytes, len, ours) : -EIO;
	if (map != MAP_FAILED)
		munmap(map, len);
	else
		free(bytes);
	close(from);
	return err;
}
