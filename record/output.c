/* output.c - O_EXCL and O_NOFOLLOW, with the file that was there kept as .old */
#include "record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mleak.h"

static int explain_create(const char *path, int err)
{
	log_error("cannot create the trace '%s': %s", path, strerror(-err));
	return err;
}

/* A trace takes the place of no file but a regular one.  0 or -EEXIST, logged. */
static int check_place(const char *path)
{
	struct stat st;

	if (lstat(path, &st))
		return 0;
	if (S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return 0;
	if (S_ISREG(st.st_mode)) {
		log_error("cannot write the trace to '%s': a file of another user has that name; "
			  "give "
			  "another one with -o",
			  path);
		return -EEXIST;
	}
	log_error("cannot write the trace to '%s': it exists and is no regular file; give another "
		  "name "
		  "with -o",
		  path);
	return -EEXIST;
}

int output_create(struct output *o, const char *path)
{
	int err = check_place(path), len;

	*o = (struct output){.path = path, .fd = -1};
	if (err)
		return err;
	len = snprintf(o->part, sizeof(o->part), "%s.part%d", path, (int)getpid());
	if (len < 0 || (size_t)len >= sizeof(o->part))
		return explain_create(path, -ENAMETOOLONG);
	o->fd = open(o->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (o->fd >= 0)
		return 0;
	o->part[0] = '\0';
	return explain_create(path, -errno);
}

int output_commit(struct output *o)
{
	char old[PATH_MAX];
	int err = check_place(o->path);

	if (err)
		return err;
	if ((size_t)snprintf(old, sizeof(old), "%s.old", o->path) >= sizeof(old))
		return explain_create(o->path, -ENAMETOOLONG);
	if (rename(o->path, old) && errno != ENOENT) {
		err = -errno;
		log_error("cannot rename '%s' to '%s': %s", o->path, old, strerror(-err));
		return err;
	}
	if (rename(o->part, o->path))
		return explain_create(o->path, -errno);
	o->part[0] = '\0';
	return 0;
}

void output_close(struct output *o)
{
	if (o->fd < 0)
		return;
	close(o->fd);
	o->fd = -1;
	if (o->part[0])
		unlink(o->part);
}
