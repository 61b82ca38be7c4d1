/* kernel_origins.c - see kernel_origins.h */
#include "record/kernel/kernel_origins.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <linux/magic.h>

#include "record/base/proc.h"
#include "record/kernel/gfp_flags.h"

#define FILEID_KERNFS  0xfe /* include/linux/exportfs.h */
#define SLOTS_AT_FIRST 1024

struct known {
	struct kernel_origin_key key;
	uint32_t number; /* 0: the slot is empty */
};

struct kernel_origins {
	const struct kmem_probes *probes;
	struct mlk_writer *writer;
	struct known *slots; /* open addressing */
	size_t nr_slots, nr;
	struct gfp_flags flags;
	bool know_proc;
	const char *cgroups_at; /* where cgroups of version 2 are mounted */
	int cgroups;		/* a descriptor of that, or -1 */
	char cache[64], process[64], cgroup[PATH_MAX];
};

/* The second place is that of systemd's hybrid of both versions: systemd.io/CGROUP_DELEGATION. */
static void open_cgroups(struct kernel_origins *o)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	o->cgroups = -1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && o->cgroups < 0; i++) {
		o->cgroups_at = places[i];
		if (!statfs(places[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			o->cgroups = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
}

static void read_flags(struct kernel_origins *o)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct utsname u = {0};

	uname(&u);
	gfp_flags_init(&o->flags, u.release, btf);
	btf__free(btf);
}

int kernel_origins_new(struct kernel_origins **out, const struct kmem_probes *probes,
		       struct mlk_writer *w)
{
	struct kernel_origins *o = calloc(1, sizeof(*o));

	*out = NULL;
	if (!o)
		return -ENOMEM;
	o->probes = probes;
	o->know_proc = kmem_probes_know_proc(probes);
	o->writer = w;
	o->nr_slots = SLOTS_AT_FIRST;
	o->slots = calloc(o->nr_slots, sizeof(*o->slots));
	open_cgroups(o);
	if (!o->slots) {
		kernel_origins_free(o);
		return -ENOMEM;
	}
	read_flags(o);
	*out = o;
	return 0;
}

static size_t slot_of(const struct known *slots, size_t nr_slots,
		      const struct kernel_origin_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */
	size_t at;

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3;
	at = (hash ^ hash >> 29) & (nr_slots - 1);
	while (slots[at].number && memcmp(&slots[at].key, key, sizeof(*key)) != 0)
		at = (at + 1) & (nr_slots - 1);
	return at;
}

static int grow(struct kernel_origins *o)
{
	size_t nr_slots = o->nr_slots * 2;
	struct known *slots;

	if (o->nr * 2 < o->nr_slots)
		return 0;
	slots = calloc(nr_slots, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < o->nr_slots; i++)
		if (o->slots[i].number)
			slots[slot_of(slots, nr_slots, &o->slots[i].key)] = o->slots[i];
	free(o->slots);
	o->slots = slots;
	o->nr_slots = nr_slots;
	return 0;
}

const char *kernel_origins_cache(struct kernel_origins *o, uint32_t kind, uint64_t cache,
				 uint64_t size)
{
	struct kmem_read read = {.at = cache, .kind = KMEM_READ_CACHE_NAME};

	o->cache[0] = '\0';
	if (kind == KMEM_KMALLOC)
		snprintf(o->cache, sizeof(o->cache), size % 1024 ? "kmalloc-%lu" : "kmalloc-%luk",
			 (unsigned long)(size % 1024 ? size : size / 1024));
	else if (kind == KMEM_PERCPU)
		snprintf(o->cache, sizeof(o->cache), "percpu");
	else if (cache && !kmem_probes_read(o->probes, &read))
		memcpy(o->cache, read.bytes, sizeof(o->cache));
	o->cache[sizeof(o->cache) - 1] = '\0';
	return o->cache;
}

/* A process that has ended, or that /proc has under another number, has left the name of the
 * thread. */
static const char *process_name(struct kernel_origins *o, uint32_t tgid, const char *comm)
{
	size_t len = tgid && o->know_proc
			     ? proc_read(o->process, sizeof(o->process), "/proc/%u/comm", tgid)
			     : 0;

	if (len)
		o->process[strcspn(o->process, "\n")] = '\0';
	else
		snprintf(o->process, sizeof(o->process), "%s", tgid ? comm : "");
	return o->process;
}

/* The path of a cgroup is found by the handle that the kernel makes of its id: open_by_handle_at(2)
 * with a handle of kernfs. */
static const char *cgroup_path(struct kernel_origins *o, uint64_t id)
{
	struct {
		struct file_handle head;
		uint64_t id;
	} handle = {.head = {.handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS}, .id = id};
	char link[64];
	ssize_t len = -1;
	size_t mount;
	int fd;

	memcpy(handle.head.f_handle, &id, sizeof(id));
	fd = o->cgroups < 0 ? -1 : open_by_handle_at(o->cgroups, &handle.head, O_PATH | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = readlink(link, o->cgroup, sizeof(o->cgroup) - 1);
		close(fd);
	}
	if (len < 0)
		len = id ? snprintf(o->cgroup, sizeof(o->cgroup), "cgroup %lu", (unsigned long)id)
			 : 0;
	o->cgroup[len] = '\0';
	mount = strlen(o->cgroups_at);
	return strncmp(o->cgroup, o->cgroups_at, mount) != 0 || !o->cgroup[mount]
		       ? (id == 1 ? "/" : o->cgroup)
		       : o->cgroup + mount;
}

int kernel_origins_number(struct kernel_origins *o, const struct kernel_origin_key *key,
			  const char *comm, uint32_t *number)
{
	int err = grow(o);
	struct known *known = err ? NULL : &o->slots[slot_of(o->slots, o->nr_slots, key)];
	struct mlk_origin origin;
	char flags[512];

	if (err)
		return err;
	if (!known->number) {
		*known = (struct known){.key = *key, .number = (uint32_t)++o->nr};
		gfp_flags_text(&o->flags, key->gfp, flags, sizeof(flags));
		origin = (struct mlk_origin){
			.number = known->number,
			.tgid = key->tgid,
			.process = process_name(o, key->tgid, comm),
			.cgroup = cgroup_path(o, key->cgroup),
			.cache = kernel_origins_cache(o, key->kind, key->cache, key->cache),
			.flags = flags,
			.order = key->order};
		err = mlk_writer_origins(o->writer, &origin, 1);
	}
	*number = known->number;
	return err;
}

void kernel_origins_begin_trace(struct kernel_origins *o, struct mlk_writer *w)
{
	memset(o->slots, 0, o->nr_slots * sizeof(*o->slots));
	o->nr = 0;
	o->writer = w;
}

void kernel_origins_free(struct kernel_origins *o)
{
	if (!o)
		return;
	if (o->cgroups >= 0)
		close(o->cgroups);
	free(o->slots);
	free(o);
}
