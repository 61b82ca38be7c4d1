/* output.c - see output.h */
#include "record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "format/trace.h"
#include "mleak.h"

int output_check_name(const char *name, bool has_pid, bool numbered)
{
	for (const char *at = strchr(name, '%'); at; at = strchr(at + 2, '%')) {
		if (at[1] == 'p' && !has_pid) {
			log_error("--kernel records no process whose number %%p in '%s' could be: "
				  "leave it out",
				  name);
			return -EINVAL;
		}
		if (at[1] == 'n' && !numbered) {
			log_error("%%n in '%s' is the number of a trace, of which --switch-output "
				  "makes several: leave it out",
				  name);
			return -EINVAL;
		}
		if (!at[1] || !strchr("phtn%", at[1])) {
			log_error("--output knows %%p (process), %%h (host), %%t (time) and %%%%, "
				  "and nothing else behind a %% in '%s'",
				  name);
			return -EINVAL;
		}
	}
	return 0;
}

int output_claim_pipe(int *pipe)
{
	int err;

	if (isatty(STDOUT_FILENO)) {
		log_error("cannot write the trace to a terminal: give the name of a file with -o, "
			  "or a pipe as in 'mleak record -o - | mleak report -'");
		return -EINVAL;
	}
	*pipe = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (*pipe >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0)
		return 0;
	err = -errno;
	log_error("cannot write the trace to the standard output: %s", strerror(-err));
	return err;
}

/* What %@c is replaced with. */
static void replacement(const struct output *o, char c, pid_t pid, char *text, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	if (c == 'p') {
		snprintf(text, size, "%d", (int)pid);
	} else if (c == 'n') {
		snprintf(text, size, "%u", o->number);
	} else if (c == 'h') {
		if (gethostname(text, size - 1))
			*text = '\0';
		text[size - 1] = '\0';
		for (char *at = text; *at; at++)
			if (*at == '/')
				*at = '_';
	} else if (c == 't' && localtime_r(&now, &tm)) {
		strftime(text, size, "%Y%m%d-%H%M%S", &tm);
	} else {
		snprintf(text, size, "%%");
	}
}

/* Into o->path.  Returns 0 or -ENAMETOOLONG. */
static int expand(struct output *o, const char *name, pid_t pid)
{
	size_t used = 0;

	for (; *name; name++) {
		char text[256] = {*name, '\0'};
		size_t len;

		if (*name == '%')
			replacement(o, *++name, pid, text, sizeof(text));
		len = strlen(text);
		if (used + len >= sizeof(o->path))
			return -ENAMETOOLONG;
		memcpy(o->path + used, text, len);
		used += len;
	}
	o->path[used] = '\0';
	return 0;
}

/* Does the name of a file have %n? */
static bool is_numbered(const char *name)
{
	const char *at = strchr(name, '%');

	while (at && at[1] != 'n')
		at = strchr(at + 2, '%');
	return at != NULL;
}

/* The file of the trace could not be made next to its place, or get its name, with @err: log so in
 * one sentence. */
static int explain(const struct output *o, const char *path, int err)
{
	if (err > MLK_E_MAGIC)
		log_error("cannot create the trace '%s': %s", path, mlk_strerror(err));
	else
		log_error("cannot write the trace to '%s'%s: %s; give another name with -o", path,
			  o->place.of_old
				  ? " (the existing file would be kept with the suffix '.old')"
				  : "",
			  mlk_strerror(err));
	return err;
}

int output_open(struct output *o, const struct output_opts *opts, pid_t pid)
{
	char name[PATH_MAX];
	int err;

	o->place = (struct mlk_place){.fd = -1, .dir = -1};
	o->told = opts->told;
	if (opts->pipe >= 0) {
		o->fd = opts->pipe;
		snprintf(o->path, sizeof(o->path), "-");
		return 0;
	}
	err = snprintf(name, sizeof(name), "%s%s", opts->name,
		       o->number && !is_numbered(opts->name) ? ".%n" : "") < (int)sizeof(name)
		      ? expand(o, name, pid)
		      : -ENAMETOOLONG;
	if (err)
		return explain(o, opts->name, err);
	err = mlk_place_open(&o->place, o->path, NULL);
	o->fd = o->place.fd;
	return err ? explain(o, o->path, err) : 0;
}

int output_take(struct output *o)
{
	int err = o->place.fd < 0 ? 0 : mlk_place_take(&o->place, NULL);

	/* who waits for it may have gone */
	if (!err && o->told >= 0)
		(void)!write(o->told, "", 1);
	return err ? explain(o, o->path, err) : 0;
}

int output_check(const struct output *o, uint64_t bytes)
{
	int err = o->place.fd < 0 ? 0 : mlk_place_check(&o->place, bytes);

	if (err)
		log_error("'%s' is not the trace that was recorded: %s", o->path,
			  mlk_strerror(err));
	return err;
}

const char *output_size(char *text, uint64_t bytes)
{
	static const char *const unit[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	int i = 0;

	for (; value >= 1024 && i < 4; i++)
		value /= 1024;
	snprintf(text, OUTPUT_SIZE_TEXT, i ? "%.1f %s" : "%.0f %s", value, unit[i]);
	return text;
}

void output_tell(const struct output *o, uint64_t bytes)
{
	char text[OUTPUT_SIZE_TEXT];
	const char *size = output_size(text, bytes);

	if (o->place.fd < 0)
		log_info("wrote the trace to the standard output (%s)", size);
	else
		log_info("wrote '%s' (%s); now run: mleak report %s", o->path, size, o->path);
}

void output_move(struct output *to, const struct output *from)
{
	*to = *from;
	to->place.path = to->path;
}

void output_close(struct output *o)
{
	mlk_place_close(&o->place);
}
