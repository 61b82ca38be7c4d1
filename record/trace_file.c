/* trace_file.c - the place of a trace, and what there is to say of it */
#include "record/trace_file.h"

#include <string.h>

#include "format/trace.h"
#include "mleak.h"

static int explain(const struct mlk_place *place, const char *path, int err)
{
	if (err > MLK_E_MAGIC)
		log_error("cannot create the trace '%s': %s", path, mlk_strerror(err));
	else
		log_error("cannot write the trace to '%s'%s: %s; give another name with -o", path,
			  place->of_old
				  ? " (the existing file would be kept with the suffix '.old')"
				  : "",
			  mlk_strerror(err));
	return err;
}

int trace_file_create(struct mlk_place *place, const char *path)
{
	int err = mlk_place_open(place, path, NULL);

	return err ? explain(place, path, err) : 0;
}

int trace_file_commit(struct mlk_place *place)
{
	int err = mlk_place_take(place, NULL);

	return err ? explain(place, place->path, err) : 0;
}

int trace_file_check(const struct mlk_place *place, uint64_t bytes)
{
	int err = mlk_place_check(place, bytes);

	if (err)
		log_error("'%s' is not the trace that was recorded: %s", place->path,
			  mlk_strerror(err));
	return err;
}
