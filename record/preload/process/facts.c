/* facts.c - see facts.h */
#include "record/preload/process/facts.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

int facts_make(struct facts *f, struct preload_header *memory)
{
	void *apart;

	*f = (struct facts){.memory = memory, .fd = -1};
	if (!memory->follow)
		return 0;
	f->fd = memfd_create(PRELOAD_FACTS_NAME, MFD_CLOEXEC);
	if (f->fd < 0 || ftruncate(f->fd, sizeof(*f->apart)))
		return -errno;
	apart = mmap(NULL, sizeof(*f->apart), PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	if (apart == MAP_FAILED)
		return -errno;
	f->apart = apart;
	f->apart->layout = memory->layout;
	f->apart->nonce = memory->nonce;
	memory->facts_fd = (uint32_t)f->fd;
	return 0;
}

void facts_release(struct facts *f)
{
	if (f->apart)
		munmap(f->apart, sizeof(*f->apart));
	if (f->memory && f->fd >= 0)
		close(f->fd);
	*f = (struct facts){.fd = -1};
}

static void set_golang(struct preload_facts *to, uint32_t number, const struct event_go *go)
{
	__atomic_store_n(&to->golang.on, 0, __ATOMIC_RELEASE);
	to->golang = *go;
	__atomic_fetch_add(&to->changes, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&to->golang.on, number, __ATOMIC_RELEASE);
}

void facts_tell_golang(const struct facts *f, uint32_t slot, uint32_t program,
		       const struct event_go *go)
{
	struct event_go off = *go;

	off.on = 0;
	set_golang(&f->memory->facts[slot], program + 1, &off);
	if (f->apart)
		set_golang(&f->apart->facts[slot], program + 1, &off);
}

static void set_python(struct preload_facts *to, uint32_t program, const struct event_python *at)
{
	to->python = *at;
	to->python.program = program;
	__atomic_fetch_add(&to->changes, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&to->pythons, 1, __ATOMIC_RELEASE);
}

void facts_tell_python(const struct facts *f, uint32_t slot, uint32_t program,
		       const struct event_python *python)
{
	set_python(&f->memory->facts[slot], program, python);
	if (f->apart)
		set_python(&f->apart->facts[slot], program, python);
}
