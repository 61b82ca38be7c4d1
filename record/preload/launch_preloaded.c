/* launch_preloaded.c - whether a command can take the library, and its start with it */
#include "record/preload/launch_preloaded.h"
#include "record/preload/backend.h"
#include "record/ptrace/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mleak.h"
#include "record/base/rlimits.h"
#include "record/libpreload/ring.h"
#include "record/module/elffile.h"

#define LOADER	    "ld-linux" /* in the name of the C library's own loader */
#define HANDED_DOWN 100	       /* descriptors above this are hardly ever used by a program */

/* Find the file @name beside this program, or where it is installed.  On failure one sentence was
 * logged.  Returns 0 or -errno. */
static int find_file(const char *name, char *path, size_t size)
{
	static const char *const places[] = {"", "../lib/mleak/", "../lib64/mleak/",
					     "../lib/x86_64-linux-gnu/mleak/"};
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[len < 0 ? 0 : len] = '\0';
	slash = strrchr(exe, '/');
	if (slash)
		slash[1] = '\0';
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		int n = snprintf(path, size, "%s%s%s", exe, places[i], name);

		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return 0;
	}
	log_error("cannot find '%s', neither beside mleak nor in ../lib/mleak", name);
	return -ENOENT;
}

int preload_find_library(char *path, size_t size)
{
	int err = find_file(PRELOAD_LIBRARY, path, size);

	if (err || !strpbrk(path, " :"))
		return err;
	log_error("cannot preload '%s': the loader accepts no path with a space or colon", path);
	return -EINVAL;
}

bool preload_is_library(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, PRELOAD_LIBRARY);
}

/* The file that execvp(3) will start, into @path.  False: there is none. */
static bool find_program(const char *name, char *path, size_t size)
{
	const char *dir = getenv("PATH");

	if (strchr(name, '/'))
		return snprintf(path, size, "%s", name) < (int)size && !access(path, X_OK);
	for (dir = dir ? dir : "/bin:/usr/bin"; *dir; dir += *dir == ':') {
		size_t len = strcspn(dir, ":");
		struct stat st;

		if (snprintf(path, size, "%.*s%s%s", (int)len, dir, len ? "/" : "./", name) <
			    (int)size &&
		    !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK))
			return true;
		dir += len;
	}
	return false;
}

/* What decides whether the library comes up in a program. */
struct loading {
	char loader[128]; /* that it asks for; "": it is statically linked */
	bool wrapped;	  /* libmleak-wrap.a is in it, */
	uint64_t layout;  /* of this PRELOAD_LAYOUT */
};

/* Is our note among those in the @len bytes at @notes?  Sizes in it are of any file's making. */
static void read_notes(const char *notes, size_t len, struct loading *l)
{
	static const uint32_t ours[3] = {6, 8, 1};

	for (size_t at = 0; at + 28 <= len; at += 4) {
		if (memcmp(notes + at, ours, 12) || memcmp(notes + at + 12, "mleak\0\0", 8))
			continue;
		memcpy(&l->layout, notes + at + 20, 8);
		l->wrapped = true;
	}
}

static void read_loading(Elf *elf, struct loading *l)
{
	size_t nr = 0, bytes;
	const char *file = elf_rawfile(elf, &bytes);

	memset(l, 0, sizeof(*l));
	if (!file || elf_getphdrnum(elf, &nr))
		return;
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr p;

		if (!gelf_getphdr(elf, (int)i, &p) || p.p_offset > bytes ||
		    p.p_filesz > bytes - p.p_offset)
			continue;
		if (p.p_type == PT_INTERP)
			snprintf(l->loader, sizeof(l->loader), "%.*s", (int)p.p_filesz,
				 file + p.p_offset);
		else if (p.p_type == PT_NOTE)
			read_notes(file + p.p_offset, p.p_filesz, l);
	}
}

/* Does the kernel give the program at @path rights that its user has not? */
static bool gains_rights(const char *path, const struct stat *st)
{
	if (geteuid() == 0)
		return false;
	return (st->st_mode & S_ISUID && st->st_uid != geteuid()) ||
	       (st->st_mode & S_ISGID && st->st_gid != getegid()) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

/* Why the library will not come up in the program at @path; NULL: it should. */
static const char *hindrance(const char *path)
{
	const char *why = NULL;
	char magic[4] = "";
	struct loading l;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	/* What cannot be read, or is a script, is for execve(2) to judge. */
	if (fd < 0)
		return NULL;
	if (fstat(fd, &st) || pread(fd, magic, 4, 0) != 4 || memcmp(magic, "\177ELF", 4)) {
		close(fd);
		return NULL;
	}
	elf = elffile_open(fd);
	if (!elf) {
		why = "it is not a 64-bit x86-64 program, and mleak records no others yet";
	} else {
		read_loading(elf, &l);
		if (gains_rights(path, &st))
			why = "it is set-user-id or has capabilities, so the loader preloads "
			      "nothing";
		else if (!l.loader[0] && l.wrapped && l.layout != PRELOAD_LAYOUT)
			why = "it is linked with the libmleak-wrap.a of another version of mleak";
		else if (!l.loader[0] && !l.wrapped)
			why = "it is statically linked, so there is no loader to preload anything; "
			      "'mleak --wrap-flags' prints the flags to link it with";
		else if (l.loader[0] && !strstr(l.loader, LOADER))
			why = "its C library is not glibc, which the preloaded library needs";
	}
	elf_end(elf);
	close(fd);
	return why;
}

/* What names the memory to the library, into @text.  Returns whether it could be handed down. */
static bool tell(const struct preload_child *child, char *text, size_t size)
{
	const struct preload_header *h = child->header;
	int fd;

	if (h->follow) {
		snprintf(text, size, "@%u,%u,%" PRIx64 ",a", h->recorder_pid, h->recorder_fd,
			 h->nonce);
		return true;
	}
	fd = fcntl(child->memory, F_DUPFD, HANDED_DOWN);
	if (fd < 0)
		fd = dup(child->memory);
	snprintf(text, size, "%d,%" PRIx64, fd, h->nonce);
	return fd >= 0;
}

/* In the child: become the command; if that fails, tell the parent why through @report. */
static void become(const struct preload_child *child, char **argv, int report)
{
	const char *others = getenv("LD_PRELOAD");
	char value[2 * PATH_MAX], memory[64];

	child->header->processes[0].pid = (uint32_t)getpid();
	snprintf(value, sizeof(value), "%s%s%s", child->library, others && *others ? ":" : "",
		 others ? others : "");
	errno = 0;
	if (tell(child, memory, sizeof(memory)) && !setenv("LD_PRELOAD", value, 1) &&
	    !setenv(PRELOAD_ENV, memory, 1))
		execvp(argv[0], argv);
	launch_not_begun(report);
}

int preload_start(const struct preload_child *child, char **argv, pid_t *pid)
{
	char path[PATH_MAX];
	const char *why = find_program(argv[0], path, sizeof(path)) ? hindrance(path) : NULL;
	void (*on_child)(int);
	int report[2], err;

	if (why) {
		log_error("cannot record '%s' with --backend preload: %s", argv[0], why);
		return EXIT_RECORD_FAILED;
	}
	if (pipe2(report, O_CLOEXEC)) {
		log_error("cannot start '%s': %s", argv[0], strerror(errno));
		return EXIT_RECORD_FAILED;
	}
	on_child = signal(SIGCHLD, SIG_DFL); /* if ignored, nothing could be waited for */
	*pid = fork();
	if (*pid == 0) {
		signal(SIGCHLD, on_child);
		rlimits_restore();
		become(child, argv, report[1]);
	}
	err = *pid < 0 ? errno : 0;
	close(report[1]);
	/* Either exec closes the pipe, or the reason of its failure comes through it. */
	if (!err && read(report[0], &err, sizeof(err)) == (ssize_t)sizeof(err))
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	close(report[0]);
	return err ? launch_explain(argv[0], err) : 0;
}

#ifndef WRAPPED
#define WRAPPED "malloc free" /* build.mk of libpreload gives all */
#endif

int print_wrap_flags(void)
{
	char path[PATH_MAX];

	if (find_file("libmleak-wrap.a", path, sizeof(path)))
		return EXIT_FAILED;
	if (strpbrk(path, " \t\n")) {
		log_error("the path '%s' has a space, at which a shell would split it", path);
		return EXIT_FAILED;
	}
	for (const char *name = WRAPPED; *name; name += strspn(name, " ")) {
		int len = (int)strcspn(name, " ");

		printf("-Wl,--wrap=%.*s ", len, name);
		name += len;
	}
	/* Else a program that calls none of them, but the C library does, would not get them. */
	printf("-Wl,-u,__wrap_malloc %s\n", path);
	return EXIT_OK;
}
