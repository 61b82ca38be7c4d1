/* output.c - O_EXCL and O_NOFOLLOW, with the file that was there kept as .old */
#include "record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mleak.h"

/* Rename path.old to path, or the other way round.  0 or -errno. */
static int swap_old(const struct output *o, bool back)
{
	char old[PATH_MAX];

	if ((size_t)snprintf(old, sizeof(old), "%s.old", o->path) >= sizeof(old))
		return -ENAMETOOLONG;
	return rename(back ? old : o->path, back ? o->path : old) ? -errno : 0;
}

/* Move what is at the path out of the way.  0, also when nothing is there, or -errno, logged. */
static int keep_old(struct output *o)
{
	struct stat st;
	int err;

	if (lstat(o->path, &st))
		return 0; /* open() will say what else is wrong */
	if (!S_ISREG(st.st_mode)) {
		log_error("cannot write the trace to '%s': it exists and is no regular file; give "
			  "another "
			  "name with -o",
			  o->path);
		return -EEXIST;
	}
	err = swap_old(o, false);
	if (err)
		log_error("cannot rename '%s' to '%s.old': %s", o->path, o->path, strerror(-err));
	o->kept = !err;
	return err;
}

int output_create(struct output *o, const char *path)
{
	int err;

	*o = (struct output){.path = path, .fd = -1};
	err = keep_old(o);
	if (err)
		return err;
	o->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (o->fd >= 0)
		return 0;
	err = -errno;
	log_error("cannot create the trace '%s': %s", path, strerror(-err));
	if (o->kept)
		swap_old(o, true);
	return err;
}

void output_close(struct output *o)
{
	if (o->fd >= 0)
		close(o->fd);
	o->fd = -1;
}

void output_discard(struct output *o)
{
	if (o->fd < 0)
		return;
	output_close(o);
	unlink(o->path);
	if (o->kept)
		swap_old(o, true);
}
