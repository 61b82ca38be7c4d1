/* pids.c - see pids.h */
#include "record/pids.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmdline/options.h"
#include "record/base/proc.h"

#define LISTED	    8 /* of the processes with one name */
#define COMMAND_MAX 40
#define KTHREAD	    0x00200000u /* PF_KTHREAD among the flags of /proc/PID/stat */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Is @pid a process that ends, or a thread of the kernel? */
static bool has_no_program(pid_t pid)
{
	char text[512], state = 'X';
	unsigned int flags = 0;
	const char *behind;

	proc_read(text, sizeof(text), "/proc/%d/stat", (int)pid);
	behind = strrchr(text, ')'); /* the name may have any character */
	if (!behind || sscanf(behind + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
		return true;
	return state == 'Z' || state == 'X' || flags & KTHREAD;
}

static bool is_named(pid_t pid, const char *name)
{
	char text[PATH_MAX], path[64];
	ssize_t len;

	proc_read(text, sizeof(text), "/proc/%d/comm", (int)pid);
	text[strcspn(text, "\n")] = '\0';
	if (!strcmp(text, name))
		return true;
	proc_read(text, sizeof(text), "/proc/%d/cmdline", (int)pid); /* up to the end of argv[0] */
	if (!strcmp(base_name(text), name))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	len = readlink(path, text, sizeof(text) - 1);
	text[len > 0 ? len : 0] = '\0';
	return !strcmp(base_name(text), name);
}

static int compare_pids(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* The processes named @name, in ascending order: up to @room of them in @found.  Returns how many
 * there are. */
static size_t find_named(const char *name, pid_t *found, size_t room)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	size_t nr = 0;

	while (proc && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (pid <= 0 || pid == getpid() || !is_named(pid, name) || has_no_program(pid))
			continue;
		if (nr < room)
			found[nr] = pid;
		nr++;
	}
	if (proc)
		closedir(proc);
	qsort(found, nr < room ? nr : room, sizeof(*found), compare_pids);
	return nr;
}

/* The command line of @pid without a folder, or its name, into the COMMAND_MAX bytes at @text. */
static void read_command(pid_t pid, char *text)
{
	char all[PATH_MAX];
	size_t len = proc_read(all, sizeof(all), "/proc/%d/cmdline", (int)pid), skip;

	if (!len)
		len = proc_read(all, sizeof(all), "/proc/%d/comm", (int)pid);
	skip = (size_t)(base_name(all) - all);
	for (size_t i = skip; i < len; i++)
		if (!all[i] || all[i] == '\n')
			all[i] = ' ';
	while (len > skip && all[len - 1] == ' ')
		all[--len] = '\0';
	snprintf(text, COMMAND_MAX, "%.*s", COMMAND_MAX - 1, all + skip);
}

/* Say which processes have the name @name, of which the first are in @found. */
static void explain_several(const struct option_info *option, const char *name, const pid_t *found,
			    size_t nr)
{
	size_t listed = nr < LISTED ? nr : LISTED, used = 0;
	char list[LISTED * (COMMAND_MAX + 32)], more[64] = "";

	for (size_t i = 0; i < listed; i++) {
		char command[COMMAND_MAX];

		read_command(found[i], command);
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%d (%s)",
					 i ? ", " : "", (int)found[i], command);
	}
	if (nr > listed)
		snprintf(more, sizeof(more), " and %zu more", nr - listed);
	log_error("--%s wants one process, but '%s' is the name of %zu: %s%s; give their numbers, "
		  "with commas between",
		  option->name, name, nr, list, more);
}

static int read_name(const struct option_info *option, const char *name, pid_t *pid)
{
	pid_t found[LISTED];
	size_t nr = *name ? find_named(name, found, LISTED) : 0;

	if (nr == 1) {
		*pid = found[0];
		return 0;
	}
	if (nr)
		explain_several(option, name, found, nr);
	else
		log_error("--%s wants the number or name of a running process, as 'ps -e' shows "
			  "it, not '%s'",
			  option->name, name);
	return -EINVAL;
}

/* @word is a number or a name. */
static int read_one(const struct option_info *option, const char *word, pid_t *pid)
{
	uint64_t value;
	int err;

	if (!*word || word[strspn(word, "0123456789")])
		return read_name(option, word, pid);
	err = option_number(option, word, 1, INT_MAX,
			    "the number of a process, as 'ps -e' shows it", &value);
	*pid = (pid_t)value;
	return err;
}

int pids_read(const struct option_info *option, const char *text, pid_t *pids, size_t *nr)
{
	char *words = strdup(text), *rest = words, *word;
	int err = words ? 0 : -EINVAL;

	if (err)
		log_error("cannot read the options: %s", strerror(ENOMEM));
	while (!err && (word = strsep(&rest, ",")) != NULL) {
		if (*nr == RECORD_MAX_PIDS) {
			log_error("too many processes: give at most %d with -p", RECORD_MAX_PIDS);
			err = -EINVAL;
		} else {
			err = read_one(option, word, &pids[*nr]);
			*nr += !err;
		}
	}
	free(words);
	return err;
}
