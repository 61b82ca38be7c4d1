/* top_source.c - see top_source.h */
#include "report/top/top_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmdline/trace_name.h"
#include "format/copy.h"
#include "mleak.h"
#include "report/base/text.h"
#include "report/trace/open_trace.h"

#define ZSTD_LEVEL 1 /* as recorders do */

#define LOOK_NS 50000000u /* until it is looked again whether the recorder has ended */

/* The signals that end it; blocked, so that they come by the descriptor. */
static void take_signals(struct top_source *source)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &source->mask);
	source->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Is the trace to come from the standard input, and no file that could be read again? */
static bool comes_by_pipe(const char *path)
{
	struct stat st;

	return !strcmp(path, "-") && !fstat(STDIN_FILENO, &st) &&
	       (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

/* Wait for the first bytes, or a signal. */
static int open_pipe(struct top_source *source)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	source->stream = STDIN_FILENO;
	source->live = true;
	while (!poll(&in, 1, 0) && !source->stop)
		top_source_wait(source, LOOK_NS);
	return source->stop ? EXIT_OK : open_trace_stream(&source->trace);
}

static int open_file(struct top_source *source)
{
	int status;

	if (comes_by_pipe(source->opts->path))
		return open_pipe(source);
	status = open_trace(&source->trace, source->opts->path, source->shown);

	if (status == EXIT_OK)
		source->live = mlk_reader_is_growing(source->trace);
	return status;
}

/* Say why the trace cannot be kept. */
static int refuse_place(const struct top_source *source, int err)
{
	log_error("cannot keep the trace in '%s': %s; give another name with -o", source->shown,
		  mlk_strerror(err));
	return EXIT_RECORD_FAILED;
}

/* The recorder has ended before there was a trace: it has said why. */
static int explain_stream(struct top_source *source, int err)
{
	if (err == MLK_E_EMPTY)
		return top_source_finish(source, EXIT_OK);
	log_error("cannot read what is recorded: %s", mlk_strerror(err));
	return EXIT_RECORD_FAILED;
}

/* Where the trace of process @pid is kept; 0: it is not known yet, though the name has it.  Returns
 * 0 or an error. */
static int open_place(struct top_source *source, pid_t pid)
{
	int err =
		trace_name_expand(source->path, sizeof(source->path), source->opts->output, pid, 0);
	bool has_pid = trace_name_has(source->opts->output, 'p');
	char *shown;

	if (err)
		return err;
	shown = text_escape(pid || !has_pid ? source->path : source->opts->output);
	if (!shown)
		return -ENOMEM;
	free(source->shown);
	source->shown = shown;
	return mlk_place_open(&source->place, source->path, NULL);
}

static int open_recorder(struct top_source *source)
{
	const char *output = source->opts->output;
	bool of_pid = output && trace_name_has(output, 'p');
	int err = output ? open_place(source, 0) : 0;

	if (err)
		return refuse_place(source, err);
	/* the process is not known yet; but the folder can have a file */
	if (of_pid)
		mlk_place_close(&source->place);
	err = top_record_start(&source->record, source->opts, &source->mask, source->opts->screen);
	if (err) {
		log_error("cannot start the recorder: %s", strerror(-err));
		return EXIT_RECORD_FAILED;
	}
	source->live = true;
	source->stream = source->record.pipe;
	err = mlk_reader_open_stream(&source->trace, source->record.pipe);
	if (err)
		return explain_stream(source, err);
	if (of_pid)
		err = open_place(source, (pid_t)mlk_reader_meta(source->trace)->tgid);
	if (err)
		return refuse_place(source, err);
	source->kept = output != NULL;
	if (source->kept)
		mlk_reader_copy_stream(source->trace, source->place.fd);
	return EXIT_OK;
}

/* A recording that is refused before it has begun takes the place of no other trace. */
static void take_place(struct top_source *source)
{
	if (!source->kept || source->taken || source->place_err ||
	    !top_record_begun(&source->record))
		return;
	source->place_err = mlk_place_take(&source->place, NULL);
	source->taken = !source->place_err;
}

int top_source_open(struct top_source *source, const struct top_opts *opts)
{
	*source = (struct top_source){.opts = opts,
				      .signals = -1,
				      .stream = -1,
				      .record = {.pipe = -1, .told = -1, .said = -1},
				      .place = {.fd = -1, .dir = -1}};
	source->shown = text_escape(opts->path ? opts->path : opts->output ? opts->output : "-");
	if (!source->shown) {
		log_error("cannot read the options: %s", strerror(ENOMEM));
		return EXIT_FAILED;
	}
	take_signals(source);
	return opts->path ? open_file(source) : open_recorder(source);
}

/* What came from the terminal the recorder and the command have got, too.  So has what writes to
 * the pipe: its trace is wanted to the end, unless an interrupt comes again. */
static void read_signals(struct top_source *source)
{
	struct signalfd_siginfo info;

	while (read(source->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		bool first = !source->asked;

		source->asked = true;
		if (source->stream == STDIN_FILENO && first && info.ssi_signo == SIGINT)
			continue;
		if (!source->record.pid)
			source->stop = true;
		else if (info.ssi_code != SI_KERNEL)
			top_record_signal(&source->record, (int)info.ssi_signo);
	}
}

void top_source_wait(struct top_source *source, uint64_t ns)
{
	struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000),
			      .tv_nsec = (long)(ns % 1000000000)};
	struct pollfd any[] = {{.fd = source->signals, .events = POLLIN},
			       {.fd = source->stream, .events = POLLIN},
			       {.fd = source->keys ? STDIN_FILENO : -1, .events = POLLIN}};

	/* one that has ended would be there at once each time */
	if (source->trace && mlk_reader_stream_ended(source->trace))
		any[1].fd = -1;
	ppoll(any, 3, &ts, NULL);
	/* the terminal is gone, and SIGHUP may be ignored */
	source->hung_up |= source->keys && any[2].revents & (POLLHUP | POLLERR | POLLNVAL);
	read_signals(source);
	take_place(source);
}

void top_source_stop(struct top_source *source)
{
	if (source->record.pid)
		top_record_stop(&source->record);
	source->stop = !source->record.pid;
}

/* Say what the trace that was kept is.  Returns EXIT_OK or EXIT_RECORD_FAILED. */
static int tell_kept(struct top_source *source)
{
	uint64_t bytes;
	int err = mlk_reader_copied(source->trace, &bytes);

	if (source->place_err)
		return refuse_place(source, source->place_err);
	if (err) {
		log_error("the trace '%s' ends early: %s; what it holds so far can be reported",
			  source->shown, mlk_strerror(err));
		return EXIT_RECORD_FAILED;
	}
	err = mlk_place_check(&source->place, bytes);
	if (err) {
		log_error("'%s' is not the trace that was recorded: %s", source->shown,
			  mlk_strerror(err));
		return EXIT_RECORD_FAILED;
	}
	log_info("kept '%s' (%" PRIu64 " KiB); now run: mleak report %s", source->shown,
		 (bytes + 1023) / 1024, source->shown);
	return EXIT_OK;
}

/* The file that has the trace; -1: none has. */
static int kept_file(const struct top_source *source)
{
	if (source->opts->path)
		return open(source->opts->path, O_RDONLY | O_CLOEXEC);
	return source->kept ? fcntl(source->place.fd, F_DUPFD_CLOEXEC, 0) : -1;
}

/* Copy all of @from to @to.  Returns 0 or -errno. */
static int copy_file(int from, int to)
{
	uint8_t bytes[65536];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, bytes, sizeof(bytes), at)) > 0) {
		if (write(to, bytes, (size_t)n) != n)
			return errno ? -errno : -EIO;
		at += n;
	}
	return n < 0 ? -errno : 0;
}

/* Copy the trace in @from, which is closed, to @to with an end, unless it is damaged. */
static int copy_trace(int from, int to)
{
	struct mlk_reader *trace;
	struct mlk_copy *copy = NULL;
	int err = mlk_reader_open_fd(&trace, from);

	if (!err)
		err = mlk_copy_new(&copy, trace, to, ZSTD_LEVEL, MLK_COPY_ALL);
	if (!err)
		err = mlk_copy_so_far(copy);
	mlk_copy_free(copy);
	/* what is missing would not be seen in the copy */
	if (err == MLK_E_CORRUPT) {
		if (ftruncate(to, 0) || lseek(to, 0, SEEK_SET))
			err = -errno;
		else
			err = copy_file(from, to);
	}
	mlk_reader_free(trace);
	return err;
}

bool top_source_keeps(const struct top_source *source)
{
	return source->opts->path || source->kept;
}

int top_source_write(const struct top_source *source, const char *suffix, top_source_fill_fn *fill,
		     void *arg, char *path, size_t size)
{
	int from = fill ? -1 : kept_file(source), err;
	struct mlk_place place;

	snprintf(path, size, "mleak-top-%d%s", (int)getpid(), suffix);
	if (!fill && from < 0)
		return -errno;
	err = mlk_place_open(&place, path, NULL);
	if (!err) {
		err = fill ? fill(arg, place.fd) : copy_trace(from, place.fd);
		if (!err)
			err = mlk_place_take(&place, NULL);
		mlk_place_close(&place);
	} else if (from >= 0) {
		close(from);
	}
	return err;
}

void top_source_tell(struct top_source *source)
{
	char text[4096];
	off_t at = 0;
	ssize_t n;

	while (source->record.said >= 0 &&
	       (n = pread(source->record.said, text, sizeof(text), at)) > 0) {
		at += n;
		/* the file has its size from the beginning on: behind what was said is nothing */
		fwrite(text, 1, strnlen(text, (size_t)n), stderr);
		if (strnlen(text, (size_t)n) < (size_t)n)
			break;
	}
}

/* Does the process @pid run, and has not ended? */
static bool still_runs(pid_t pid)
{
	char path[64], text[512], state = 'X';
	const char *behind_name;
	FILE *stat;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	stat = fopen(path, "re");
	if (!stat)
		return false;
	text[fread(text, 1, sizeof(text) - 1, stat)] = '\0';
	fclose(stat);
	behind_name = strrchr(text, ')');
	return behind_name && sscanf(behind_name + 1, " %c", &state) == 1 && state != 'Z' &&
	       state != 'X';
}

/* The recording has ended before the command, which nobody would guess.  Returns whether it was
 * said. */
static bool tell_of_command(const struct top_source *source)
{
	const struct mlk_meta *meta = source->trace ? mlk_reader_meta(source->trace) : NULL;
	bool runs = source->record.command && meta && still_runs((pid_t)meta->tgid);

	if (runs)
		log_info("the recording has ended, and the command (pid %d) still runs: mleak "
			 "waits for its end",
			 (int)meta->tgid);
	return runs;
}

int top_source_finish(struct top_source *source, int status)
{
	bool told = false;

	if (source->record.pipe < 0)
		return status;
	/* who writes to it after this is told so */
	if (status != EXIT_OK)
		top_record_release(&source->record);
	while (!top_record_ended(&source->record)) {
		told = told || tell_of_command(source);
		top_source_wait(source, LOOK_NS);
	}
	take_place(source);
	if (status == EXIT_OK && (source->taken || source->place_err))
		status = tell_kept(source);
	if (status != EXIT_OK)
		return status;
	if (WIFEXITED(source->record.status))
		return WEXITSTATUS(source->record.status);
	return 128 + WTERMSIG(source->record.status);
}

void top_source_release(struct top_source *source)
{
	mlk_reader_free(source->trace);
	top_record_release(&source->record);
	if (source->opts && source->opts->output && !source->opts->path)
		mlk_place_close(&source->place);
	if (source->signals >= 0)
		close(source->signals);
	free(source->shown);
}
