/* exec.c - another program in a process under recording */
#include "record/session/session.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "mleak.h"
#include "record/base/clock.h"
#include "record/module/module_table.h"
#include "record/target/link_map.h"

#define FIND_NS	 1000000000u /* longest wait for a new program's libraries */
#define MOVES_NS 5000000u    /* longest time of an exec that nobody is told of */
#define HELD_NS	 200000000u  /* how long a process may be held for what is waiting */

/* Does the file of @m, which @p has or had mapped, define malloc for others, too?  (A loader's
 * gives way to the C library's.) */
static bool has_malloc(const struct process *p, const struct mlk_mapping *m)
{
	static const char *const name = "malloc";
	const char *slash = strrchr(m->path, '/');
	struct elf_function found = {0};
	const struct elf_names names = {&name, 1, &found};
	bool is_loader = slash && !strncmp(slash, "/ld-", 4) && !target_is_libc(m->path);

	if (m->inode && !is_loader)
		module_functions(&p->target, m, ELF_EXPORTED, &names);
	return found.found;
}

static bool is_probed(const struct allocators *a, const struct mlk_mapping *m)
{
	for (size_t i = 0; i < a->nr; i++)
		if (maps_same_file(&a->v[i].code, m))
			return true;
	return false;
}

/* Had the program with @maps mapped the files that are probed, and no other that allocates?  Then
 * the probes were in it from its start. */
static bool is_watched(const struct process *p, const struct maps *maps)
{
	for (size_t i = 0; i < p->allocators.nr; i++)
		if (!maps_have_file_of(maps, &p->allocators.v[i].code))
			return false;
	for (size_t i = 0; i < maps->nr; i++)
		if (!is_probed(&p->allocators, &maps->v[i]) && has_malloc(p, &maps->v[i]))
			return false;
	return p->allocators.nr > 0;
}

/* No more events come of the program of @p that had @maps. */
static void judge(struct session *s, struct process *p, const struct maps *maps)
{
	/* Of a program that could not be examined, most often because it had ended by then: the
	 * probes may have met it anyway, because its files are those of the one before. */
	if ((p->exec.in_doubt || p->exec.since_ns) && !p->exec.seen &&
	    (p->exec.links_dead || !is_watched(p, maps)))
		session_note_missed(s, p,
				    p->exec.why ? p->exec.why
						: "ended before its new program could be examined");
	p->exec.in_doubt = false;
}

void exec_judge(struct session *s, struct process *p)
{
	judge(s, p, &p->maps);
}

void exec_note(struct session *s, struct process *p, uint64_t time_ns, bool links_dead)
{
	/* Its mappings were kept when the notice of this exec came; or it has not come yet. */
	judge(s, p, p->before.nr ? &p->before : &p->maps);
	if (p->deaf)
		process_execed(p, &s->out, time_ns);
	s->forgets = true;
	p->exec.since_ns = time_ns;
	p->exec.seen = p->exec.loaded = p->exec.native = false;
	p->exec.why = NULL;
	/* The thread that called exec is the main thread now. */
	p->target.task = p->target.pid;
	probes_drop(s->probes, &p->leader.keepers);
	p->leader = (struct process_leader){0};
	/* Probes belong to the main thread's task, which is gone when another calls exec. */
	p->exec.links_dead |= links_dead;
}

/* Which program @p runs, and by which loader.  False: it cannot be known. */
static bool identify(const struct process *p, struct known_program *program)
{
	uint64_t base = target_auxv(&p->target, AT_BASE);
	const struct mlk_mapping *loader;
	struct maps maps = {0};
	struct stat st;

	if (!base || target_stat(&p->target, HELPER_EXE, "", &st) ||
	    target_read_maps(&p->target, &maps))
		return false;
	*program = (struct known_program){.dev = st.st_dev, .inode = st.st_ino};
	loader = maps_find(&maps, base);
	if (loader) {
		program->loader_dev = makedev(loader->dev_major, loader->dev_minor);
		program->loader_inode = loader->inode;
	}
	maps_release(&maps);
	return loader != NULL;
}

#define NR_KNOWN (sizeof(((struct known_programs *)0)->v) / sizeof(struct known_program))

static bool is_known(const struct known_programs *known, const struct known_program *program)
{
	size_t nr = known->nr < NR_KNOWN ? known->nr : NR_KNOWN;

	for (size_t i = 0; i < nr; i++) {
		const struct known_program *k = &known->v[i];

		if (k->inode == program->inode && k->loader_inode == program->loader_inode &&
		    k->dev == program->dev && k->loader_dev == program->loader_dev)
			return true;
	}
	return false;
}

/* The program of @p allocates by what was probed before.  It is held: one that runs may have begun
 * another by now. */
static void remember(struct session *s, const struct process *p)
{
	struct known_program program;

	if (p->exec.loaded && identify(p, &program) && !is_known(&s->known, &program))
		s->known.v[s->known.nr++ % NR_KNOWN] = program;
}

bool exec_held(struct session *s, pid_t pid)
{
	struct known_program program;
	const struct process *p;

	/* a static program can be probed before it begins */
	session_drain_for(s, HELD_NS);
	p = session_newest(s, pid);
	return p && p->traced && !p->refused && identify(p, &program) &&
	       (p->deaf || !is_known(&s->known, &program));
}

/* Has @t, which is held at its start, no library yet?  So it is where auditors come first, and
 * nothing tells when they are over.  musl's loader is the C library itself, and tells of others
 * later. */
static bool is_too_early(const struct target *t)
{
	struct maps maps = {0};
	bool has_libc = false;

	if (!link_map_is_early(t))
		return false;
	if (!target_read_maps(t, &maps))
		for (size_t i = 0; i < maps.nr; i++)
			has_libc |= target_is_libc(maps.v[i].path);
	maps_release(&maps);
	return !has_libc;
}

void exec_at_start(struct session *s, pid_t pid)
{
	uint64_t end_ns = clock_now_ns() + HELD_NS;
	struct process *p = session_newest(s, pid);

	if (p)
		p->exec.loaded = !is_too_early(&p->target);
	do
		session_drain_for(s, HELD_NS);
	while ((p = session_newest(s, pid)) != NULL && p->exec.since_ns && p->exec.loaded &&
	       !s->out.err && clock_now_ns() < end_ns);
}

/* The probes of @p, which has been running since @execed_ns, were attached only now. */
static void note_late(struct session *s, const struct process *p, uint64_t execed_ns)
{
	uint64_t gap_ns = clock_now_ns() - execed_ns;

	session_note_missed(
		s, p, "began before its probes were attached, and is recorded only from then on");
	if (s->follow)
		session_note_gap(s, gap_ns);
	else
		log_info("process %d runs '%s' now; recorded from %.1f ms after its start "
			 "(--follow stops programs at their start)",
			 (int)p->target.pid, p->target.comm, (double)gap_ns / 1e6);
}

/* Put the probes of @p on the functions of @now, where the program allocates. */
static int place(struct session *s, struct process *p, const struct allocators *now,
		 uint64_t execed_ns)
{
	bool same = !p->exec.links_dead && allocators_same(now, &p->allocators);
	int err;

	if (same) {
		remember(s, p);
		return probes_set_code(s->probes, &p->target, now);
	}
	if (p->exec.links_dead)
		probes_drop(s->probes, &p->links);
	err = probes_place(s->probes, &p->links, &p->target, now);
	/* One that is traced is held at its exec, when a static program has not begun, and may be
	 * held again when its libraries are mapped. */
	if (!err && !(p->traced && (now->code.is_static || p->exec.loaded)))
		note_late(s, p, execed_ns);
	return err;
}

/* Why the child @p cannot be recorded was said, unless it was of enough others. */
static void tell_of(struct session *s, struct process *p)
{
	if (p->parent && !p->target.hushed)
		unrecorded_reported(&s->missed);
}

/* It runs a program now that we may not watch.  The processes requested are what the recording is
 * about: without one it ends.  A child is left alone, with all that it starts. */
static void refuse(struct session *s, struct process *p)
{
	if (!p->parent) {
		trace_out_fail(&s->out, -EACCES);
		return;
	}
	if (!p->target.hushed)
		log_warn("child process %d is no longer recorded", (int)p->target.pid);
	p->refused = true;
	p->exec.in_doubt = false;
	p->exec.links_dead = true;
	probes_drop(s->probes, &p->links);
	tell_of(s, p);
	session_note_missed(s, p, "runs a program that mleak may not watch");
}

/* The program of @p is gone, or not to be read: what it had mapped will tell, of which the notices
 * may have come only now. */
static void doubt(struct session *s, struct process *p)
{
	p->exec.in_doubt = true;
	session_read_sideband(s);
}

/* Has the process with the random bytes at @random, of its program, begun another, or is it about
 * to?  The notice of that comes later than its new mappings.  It takes MOVES_NS if it has not. */
static bool moves_on(const struct process *p, uint64_t random)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	uint64_t end_ns = clock_now_ns() + MOVES_NS, now;

	do {
		now = target_auxv(&p->target, AT_RANDOM);
		if (!random || now != random || target_is_ending(&p->target))
			return true;
		nanosleep(&moment, NULL);
	} while (clock_now_ns() < end_ns);
	return false;
}

/* Was it said already why the program of @p cannot be recorded?  From now on it was. */
static bool is_explained(struct session *s, const struct process *p)
{
	struct explained_programs *e = &s->explained;
	uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (const char *at = p->target.exe; *at; at++)
		hash = (hash ^ (uint8_t)*at) * UINT64_C(0x100000001b3);
	for (size_t i = 0; i < e->nr && i < EXPLAINED; i++)
		if (e->hashes[i] == hash)
			return true;
	e->hashes[e->nr++ % EXPLAINED] = hash;
	return false;
}

/* As allocators_find(), of the program with the random bytes at @random; -ESRCH also where @p has
 * begun another meanwhile.  Why there is none is said once of a program. */
static int find_allocators(struct session *s, struct process *p, uint64_t random,
			   struct allocators *now)
{
	bool hushed = p->target.hushed;
	int err;

	p->target.hushed = true;
	err = allocators_find(now, &p->target, &s->allocator_opts);
	p->target.hushed = hushed;
	if (!err || err == -ESRCH || hushed)
		return err;
	if (moves_on(p, random))
		return -ESRCH;
	p->target.hushed = is_explained(s, p);
	if (p->target.hushed)
		return err;
	allocators_release(now);
	return allocators_find(now, &p->target, &s->allocator_opts);
}

/* Make sure that the probes are where the program allocates that @p runs since @execed_ns, with its
 * random bytes at @random. */
static void look(struct session *s, struct process *p, uint64_t execed_ns, uint64_t random)
{
	struct allocators now;
	bool is_other = false;
	int err;

	target_describe(&p->target);
	if (p->target.pid == s->pid)
		memcpy(s->comm, p->target.comm, sizeof(s->comm));
	err = find_allocators(s, p, random, &now);
	if (err && err != -ESRCH && !target_is_ending(&p->target))
		p->exec.why = "runs a program whose malloc cannot be found";
	if (!err) {
		is_other = !now.guessed && !allocators_same(&now, &p->allocators);
		err = place(s, p, &now, execed_ns);
		if (err && !target_is_ending(&p->target))
			p->exec.why = "could not be probed because the kernel refused";
	}
	if (p->exec.why)
		tell_of(s, p);
	if (err) {
		allocators_release(&now);
	} else {
		allocators_release(&p->allocators);
		p->allocators = now;
	}
	p->exec.in_doubt = false;
	/* Some events of another allocator may have come, from where it was probed already. */
	if (err && is_other && target_is_ending(&p->target))
		session_note_missed(s, p, "ended while its probes were attached");
	else if (err)
		doubt(s, p);
	/* Where none is in place that works, the allocators of before need new ones too. */
	p->exec.links_dead = err && (p->exec.links_dead || !p->links.nr);
}

void exec_follow(struct session *s, struct process *p)
{
	uint64_t execed_ns = p->exec.since_ns, random;
	bool is_static;
	int err;

	if (!execed_ns)
		return;
	if (!p->exec.native && target_is_foreign(&p->target)) {
		p->exec.since_ns = 0;
		p->exec.why = "runs a program that is not a 64-bit x86-64 one";
		doubt(s, p);
		return;
	}
	p->exec.native = true;
	/* of what is asked below: it may begin another program between two questions */
	random = target_auxv(&p->target, AT_RANDOM);
	is_static = !target_auxv(&p->target, AT_BASE);
	if (!is_static && !p->exec.loaded && !link_map_complete(&p->target, false) &&
	    clock_now_ns() - execed_ns < FIND_NS && !target_has_ended(&p->target))
		return;
	p->exec.since_ns = 0;
	p->target.hushed = p->parent && unrecorded_is_full(&s->missed);
	err = target_check_again(&p->target);
	if (err == -EACCES) {
		refuse(s, p);
		return;
	}
	p->refused = false;
	if (err) {
		doubt(s, p);
		return;
	}
	if (p->deaf)
		process_snapshot(p, &s->out, execed_ns);
	look(s, p, execed_ns, random);
	/* Its loader lists no libraries yet (musl's): there may be more to come. */
	if (p->exec.loaded && p->allocators.guessed && !p->exec.in_doubt)
		p->exec.since_ns = execed_ns;
	p->exec.loaded = false;
}
