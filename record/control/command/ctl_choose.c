/* ctl_choose.c - see ctl_choose.h */
#include "record/control/command/ctl_choose.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmdline/values.h"
#include "mleak.h"
#include "record/base/proc.h"
#include "record/control/command/ctl_passages.h"
#include "record/control/command/ctl_places.h"
#include "record/filter/choice.h"

int ctl_explain(const struct ctl_asked *c, int result)
{
	if (result <= 0)
		return result;
	log_error("%s", c->peer.answer);
	return -EINVAL;
}

/* Has the process @pid ended? */
static bool has_ended(pid_t pid)
{
	char text[2048];
	const char *threads;
	int nr = 0;

	proc_read(text, sizeof(text), "/proc/%d/status", (int)pid);
	threads = strstr(text, "\nThreads:");
	/* an ended main thread waits for the others */
	return !threads ||
	       (strstr(text, "\nState:\tZ") && sscanf(threads + 9, "%d", &nr) == 1 && nr <= 1);
}

/* Ask about the process @pid, or the thread @pid of one.  Returns 0, -ESRCH: it has ended
 * meanwhile, of which nothing is said, or -errno. */
#define ask_of(c, pid, ...) explain_unless_ended(c, pid, control_ask(&(c)->peer, __VA_ARGS__))

static int explain_unless_ended(const struct ctl_asked *c, pid_t pid, int result)
{
	return result > 0 && has_ended(pid) ? -ESRCH : ctl_explain(c, result);
}

/* Cut the mode, if there is one, off the end of @text, to be freed by the caller; *mode is static.
 */
static char *cut_mode(const char *text, const char **mode)
{
	static const char *const modes[] = {"recorded", "counted"};
	char *copy = strdup(text), *equals = copy ? strrchr(copy, '=') : NULL;

	*mode = modes[0];
	for (int i = 0; equals && i < 2; i++)
		if (!strcmp(equals + 1, modes[i])) {
			*mode = modes[i];
			*equals = '\0';
			return copy;
		}
	return copy;
}

/* The processes that are recorded: those that the recorder was named by, or all.  Returns how many,
 * MOST_PIDS at most, or -errno. */
#define MOST_PIDS (CONTROL_MAX_ANSWER / 2)
static int recorded_pids(struct ctl_asked *c, pid_t *pids)
{
	const char *at = c->peer.answer;
	int nr = 0, used, pid, err;

	if (c->peer.by_target) {
		pids[0] = c->pid;
		return 1;
	}
	err = ctl_ask(c, "pids");
	if (err)
		return err;
	for (; nr < MOST_PIDS && sscanf(at, " %d%n", &pid, &used) == 1; at += used)
		pids[nr++] = (pid_t)pid;
	return nr;
}

static bool is_called(pid_t pid, pid_t tid, const char *name)
{
	char comm[64];

	proc_read(comm, sizeof(comm), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, name);
}

/* Choose the threads called @name of process @pid.  Returns how many, or -errno. */
static int choose_named(struct ctl_asked *c, pid_t pid, const char *name, const char *mode)
{
	DIR *dir = proc_threads(pid);
	pid_t tid;
	int nr = 0, err = 0;

	while (dir && !err && (tid = proc_next_thread(dir)) > 0) {
		if (!is_called(pid, tid, name))
			continue;
		err = ask_of(c, tid, "thread %d %s", (int)tid, mode);
		nr += !err;
		err = err == -ESRCH ? 0 : err;
	}
	if (dir)
		closedir(dir);
	return err ? err : nr;
}

/* What is asked for: the value of an option, and its parts. */
struct chosen {
	const struct option_info *option;
	const char *text, *mode;
	char *name; /* the text without the mode, owned */
};

/* Is something behind a '=' that is no mode?  Names of threads may have one, and of operators. */
static bool has_other_mode(const struct chosen *of)
{
	return strchr(of->name, '=') && !strstr(of->name, "operator");
}

static int choose_thread(struct ctl_asked *c, const struct chosen *of)
{
	static const char wanted[] =
		"the number or name of a thread, or all; behind it =recorded or =counted";
	const char *name = of->name, *mode = of->mode;
	pid_t pids[MOST_PIDS];
	uint64_t tid = 1;
	int nr, of_it, found = 0;
	bool is_number = !value_number(name, &tid);

	if (!*name || !tid || (is_number && tid > INT32_MAX))
		return option_refuse(of->option, wanted, of->text);

	if (!strcmp(name, "all"))
		return ctl_ask(c, "all %s", mode);
	if (is_number)
		return ctl_ask(c, "thread %" PRIu64 " %s", tid, mode);
	nr = recorded_pids(c, pids);
	for (int i = 0; i < nr; i++) {
		of_it = choose_named(c, pids[i], name, mode);
		if (of_it < 0)
			return of_it;
		found += of_it;
	}
	if (found || nr < 0)
		return nr < 0 ? nr : 0;
	if (has_other_mode(of))
		return option_refuse(of->option, wanted, of->text);
	log_error("no recorded process has a thread '%s' now: 'ps -L -p PID' shows names and "
		  "numbers",
		  name);
	return -ESRCH;
}

/* Choose the site at @place, by the name that it was given by. */
static int ask_site(struct ctl_asked *c, pid_t pid, const struct ctl_place *place,
		    const struct chosen *of)
{
	char name[CHOICE_NAME];
	int len = snprintf(name, sizeof(name), "%s", of->name);

	if ((size_t)len >= sizeof(name))
		memcpy(name + sizeof(name) - 4, "...", 4);
	for (char *at = name; *at; at++)
		if (iscntrl((unsigned char)*at))
			*at = '?';
	return ask_of(c, pid, "site %d %" PRIx64 " %" PRIx64 " %s %s", (int)pid, place->start,
		      place->size, of->mode, name);
}

/* Choose the calls of what @of names in process @pid.  Returns how many places that is,
 * -ESRCH: it has ended, of which nothing is said, or -errno. */
static int choose_function(struct ctl_asked *c, pid_t pid, const struct chosen *of)
{
	const char *name = of->name;
	struct ctl_place places[CTL_MAX_PLACES];
	int err, nr = ctl_places_find(pid, name, places);

	if (nr < 0 && has_ended(pid))
		return -ESRCH;
	if (nr < 0)
		log_error("cannot look at process %d: %s", (int)pid, strerror(-nr));
	if (nr > CTL_MAX_PLACES) {
		log_error("process %d has %d functions '%s', and %d is the most: give addresses",
			  (int)pid, nr, name, CTL_MAX_PLACES);
		return -ENOSPC;
	}
	for (int i = 0; i < nr; i++) {
		err = ask_site(c, pid, &places[i], of);
		if (err)
			return err;
	}
	return nr;
}

/* Calls of operator new are chosen with the function that makes them. */
static int tell_passages(struct ctl_asked *c, pid_t pid)
{
	struct ctl_passage passages[CTL_MAX_PASSAGES];
	int nr = ctl_passages_find(pid, passages), err = 0;

	for (int i = 0; i < nr && !err; i++)
		err = ask_of(c, pid, "passage %d %" PRIx64 " %" PRIx64 " %" PRIx64, (int)pid,
			     passages[i].start, passages[i].size, passages[i].up);
	return err;
}

/* Choose @address of process @pid, or the function that is called so.  Returns as
 * choose_function(). */
static int choose_in(struct ctl_asked *c, pid_t pid, uint64_t address, const struct chosen *of)
{
	const struct ctl_place place = {address, 1};
	int err = tell_passages(c, pid);

	if (!err && address)
		err = ask_site(c, pid, &place, of);
	if (err)
		return err;
	return address ? 1 : choose_function(c, pid, of);
}

static int choose_site(struct ctl_asked *c, const struct chosen *of)
{
	const char *name = of->name;
	bool is_address = isdigit((unsigned char)*name);
	int nr, of_it = 0, found = 0, ended = 0;
	pid_t pids[MOST_PIDS];
	uint64_t address = 0;

	if (!*name || (is_address && (value_address(name, &address) || !address)))
		return option_refuse(of->option,
				     "an address as 0x55d0c0ffee00, or the name of a function; "
				     "behind it =recorded or =counted",
				     of->text);
	nr = recorded_pids(c, pids);
	for (int i = 0; i < nr && of_it >= 0; i++) {
		of_it = choose_in(c, pids[i], address, of);
		found += of_it > 0;
		ended += of_it == -ESRCH;
		of_it = of_it == -ESRCH ? 0 : of_it;
	}
	if (nr < 0 || of_it < 0)
		return nr < 0 ? nr : of_it;
	if (ended == nr) {
		log_error("no process is recorded any more");
		return -ESRCH;
	}
	if (found || is_address)
		return 0;
	log_error("no recorded process has a function '%s'%s: 'mleak report' shows their names; "
		  "one that was inlined everywhere is in its callers",
		  name,
		  has_other_mode(of) ? ", and =recorded or =counted is all that may follow" : "");
	return -ENOENT;
}

static int choose_process(struct ctl_asked *c, const struct chosen *of)
{
	uint64_t pid = 0;

	if (value_number(of->name, &pid) || !pid || pid > INT32_MAX)
		return option_refuse(of->option,
				     "the number of a process; behind it =recorded or =counted",
				     of->text);
	return ctl_ask(c, "process %" PRIu64 " %s", pid, of->mode);
}

int ctl_choose(struct ctl_asked *c, const struct option_info *option, const char *text)
{
	struct chosen of = {.option = option, .text = text};
	int err;

	of.name = cut_mode(text, &of.mode);
	if (!of.name) {
		log_error("%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	err = option->key == CTL_THREAD	   ? choose_thread(c, &of)
	      : option->key == CTL_PROCESS ? choose_process(c, &of)
					   : choose_site(c, &of);
	free(of.name);
	return err;
}
