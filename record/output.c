/* output.c - see output.h */
#include "record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmdline/trace_name.h"
#include "format/trace.h"
#include "mleak.h"
#include "record/base/reader_wait.h"
#include "record/trace/write_failed.h"

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

/* The file of the trace could not be made next to its place, or get its name, with @err: log so in
 * one sentence. */
static int explain(const struct output *o, const char *path, int err)
{
	if (err > MLK_E_MAGIC)
		log_error("cannot create the trace '%s': %s", path, mlk_strerror(err));
	else
		log_error("cannot write the trace to '%s'%s: %s; give another name with -o%s", path,
			  o->place.of_old
				  ? " (the existing file would be kept with the suffix '.old')"
				  : "",
			  mlk_strerror(err),
			  err == MLK_E_NO_FILE
				  ? ", or write to the standard output with '-o -', as to a pipe"
				  : "");
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
		err = reader_wait(o->fd);
		if (err)
			write_failed_tell(o->path, err, false);
		return err;
	}
	err = snprintf(name, sizeof(name), "%s%s", opts->name,
		       o->number && !trace_name_has(opts->name, 'n') ? ".%n" : "") <
			      (int)sizeof(name)
		      ? trace_name_expand(o->path, sizeof(o->path), name, pid, o->number)
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

void output_tell(const struct output *o, uint64_t bytes, bool stays)
{
	char text[OUTPUT_SIZE_TEXT];
	const char *size = output_size(text, bytes);

	if (o->place.fd < 0)
		log_info("wrote the trace to the standard output (%s)", size);
	else if (!stays)
		log_info("wrote '%s' (%s)", o->path, size);
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
