/* trace_gaps.c - see trace_gaps.h */
#include "report/trace/trace_gaps.h"

#include <inttypes.h>
#include <stdio.h>

#include "mleak.h"

static void warn_of_end(const char *path, const struct mlk_reader *trace,
			const struct mlk_condition *condition)
{
	if (!condition->ended && mlk_reader_is_growing(trace))
		log_warn("'%s' is still being written: this is its state at the last event written "
			 "so far",
			 path);
	else if (!condition->ended)
		log_warn("'%s' has no end: the recording was killed or the file was cut; this is "
			 "its state at the last event",
			 path);
	else if (condition->reason == MLK_END_ERROR)
		log_warn("'%s' ends early: the recorder could not continue to write", path);
}

/* Warn of everything that the trace does not hold any more; @with: and what was in lost chunks. */
static void warn_of_damage(const char *path, const struct mlk_condition *condition,
			   uint64_t start_ns, const char *with)
{
	const bool is_one = condition->chunks_lost == 1;
	char when[80] = "";

	if (condition->lost_to_ns)
		snprintf(when, sizeof(when), " (between %.3f s and %.3f s of the recording)",
			 (double)(int64_t)(condition->lost_from_ns - start_ns) / 1e9,
			 (double)(int64_t)(condition->lost_to_ns - start_ns) / 1e9);
	if (condition->chunks_lost)
		log_warn("'%s' is damaged: %" PRIu64 " %s%s, and with %s %s", path,
			 condition->chunks_lost,
			 is_one ? "of its chunks is lost" : "of its chunks are lost", when,
			 is_one ? "it" : "them", with);
	if (condition->bytes_skipped)
		log_warn("'%s' is cut or damaged: %" PRIu64 " bytes belong to no whole chunk and "
			 "were skipped",
			 path, condition->bytes_skipped);
	if (condition->chunks_unknown)
		log_warn("'%s' holds %" PRIu64 " %s of a kind unknown to this mleak "
			 "(" MLEAK_VERSION "), which %s skipped",
			 path, condition->chunks_unknown,
			 condition->chunks_unknown == 1 ? "chunk" : "chunks",
			 condition->chunks_unknown == 1 ? "was" : "were");
	if (condition->unwound_unused)
		log_warn("the stacks that 'mleak unwind' stored for %" PRIu64
			 " %s of '%s' are damaged or of another trace, and were unwound again",
			 condition->unwound_unused,
			 condition->unwound_unused == 1 ? "chunk" : "chunks", path);
	if (condition->index_lied)
		log_warn("'%s' is damaged: its index does not match the chunk headers, and was not "
			 "used",
			 path);
}

void warn_of_gaps(const char *path, const struct mlk_reader *trace,
		  const struct mlk_condition *condition, const char *with)
{
	warn_of_damage(path, condition, mlk_reader_meta(trace)->start_ns, with);
	warn_of_end(path, trace, condition);
}
