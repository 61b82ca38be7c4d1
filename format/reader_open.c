/* reader_open.c - a reader's beginning and end, and where its chunks are */
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "format/reader_state.h"

unsigned int mlk_reader_records_of(unsigned int type)
{
	static const unsigned int records[] = {
		[MLK_CHUNK_META] = MLK_RECORD_META,
		[MLK_CHUNK_MAPS] = MLK_RECORD_MAPS,
		[MLK_CHUNK_MODULE] = MLK_RECORD_MODULE,
		[MLK_CHUNK_EVENTS] = MLK_RECORD_EVENT,
		[MLK_CHUNK_THREADS] = MLK_RECORD_THREAD,
		[MLK_CHUNK_LOSSES] = MLK_RECORD_LOSSES,
		[MLK_CHUNK_END] = MLK_RECORD_END,
		[MLK_CHUNK_INDEX] = MLK_RECORD_INDEX,
		[MLK_CHUNK_STACKS] = MLK_RECORD_STACK,
		[MLK_CHUNK_OVERRUNS] = MLK_RECORD_OVERRUN,
		[MLK_CHUNK_UNWOUND] = MLK_RECORD_UNWOUND,
		[MLK_CHUNK_ORIGINS] = MLK_RECORD_ORIGIN,
		[MLK_CHUNK_MEMORY] = MLK_RECORD_MEMORY,
		[MLK_CHUNK_ACCOUNTS] = MLK_RECORD_ACCOUNT,
		[MLK_CHUNK_POINTERS] = MLK_RECORD_POINTERS,
		[MLK_CHUNK_PASS] = MLK_RECORD_PASS,
		[MLK_CHUNK_HEAP] = MLK_RECORD_HEAP,
		[MLK_CHUNK_SMAPS] = MLK_RECORD_SMAPS,
		[MLK_CHUNK_MARKS] = MLK_RECORD_MARK,
		[MLK_CHUNK_REGIONS] = MLK_RECORD_REGIONS,
		[MLK_CHUNK_CODE_NAMES] = MLK_RECORD_CODE_NAMES,
		[MLK_CHUNK_CODE] = MLK_RECORD_CODE,
		[MLK_CHUNK_INTERPRETERS] = MLK_RECORD_INTERPRETER,
	};

	return type < sizeof(records) / sizeof(records[0]) ? records[type] : 0;
}

int mlk_reader_list(struct mlk_reader *r, const struct mlk_entry **entries, size_t *nr)
{
	bool lied = r->index_lied;
	int err = mlk_index_list(&r->chunks, &lied, &r->list);

	r->index_lied = r->chunks.condition.index_lied = lied;
	*entries = err ? NULL : r->list.all;
	*nr = err ? 0 : r->list.nr;
	for (size_t i = 0; i < *nr; i++)
		r->list.all[i].records = mlk_reader_records_of(r->list.all[i].type);
	return err;
}

int mlk_reader_seek(struct mlk_reader *r, const struct mlk_entry *entry, unsigned int types)
{
	int found;

	mlk_reader_rewind(r, types);
	r->single = true;
	r->step = STEP_END;
	r->chunks.at = entry->offset;
	r->chunks.next_seq = entry->seq;
	found = mlk_chunks_next(&r->chunks);
	if (found < 0)
		return found;
	if (!found || r->chunks.chunk_at != entry->offset ||
	    !mlk_entry_is_of(entry, &r->chunks.header)) {
		r->index_lied = true;
		return MLK_E_CORRUPT;
	}
	mlk_reader_note_header(r);
	r->step = STEP_START;
	return 0;
}

int mlk_reader_check(struct mlk_reader *r, const struct mlk_entry *entry)
{
	int err = mlk_reader_seek(r, entry, 0);

	r->step = STEP_END;
	return err ? err : mlk_chunks_fetch(&r->chunks);
}

/* Look for META, which begins every trace, and for one whole chunk at all. */
static int read_start(struct mlk_reader *r)
{
	struct mlk_record none;
	int err;

	mlk_reader_rewind(r, 0);
	err = mlk_reader_next(r, &none);
	if (err < 0)
		return err;
	if (!r->chunks.condition.chunks)
		return MLK_E_EMPTY;
	r->meta.start_ns = r->chunks.file.start_ns;
	r->meta.realtime_ns = r->chunks.file.realtime_ns;
	r->meta.stack_mode = r->chunks.file.stack_mode;
	mlk_reader_rewind(r, MLK_RECORD_ALL);
	return r->meta_text.failed ? -ENOMEM : 0;
}

int mlk_reader_open_source(struct mlk_reader **out, const struct mlk_source *source)
{
	struct mlk_reader *r = calloc(1, sizeof(*r));
	struct mlk_source opened = *source;
	int err;

	*out = NULL;
	if (!r) {
		mlk_source_close(&opened);
		return -ENOMEM;
	}
	r->chunks.source = opened;
	r->meta.command = r->meta.exe = r->meta.comm = r->meta.hostname = "";
	r->meta.kernel = r->meta.machine = r->meta.recorder = r->meta.backend = "";
	err = mlk_chunks_open(&r->chunks);
	if (!err)
		err = read_start(r);
	if (err) {
		mlk_reader_free(r);
		return err;
	}
	*out = r;
	return 0;
}

int mlk_reader_open_file(struct mlk_reader **out, const char *path)
{
	struct mlk_source source;
	int err = mlk_source_open(&source, path);

	*out = NULL;
	return err ? err : mlk_reader_open_source(out, &source);
}

int mlk_reader_open_fd(struct mlk_reader **out, int fd)
{
	struct mlk_source source;
	int err = mlk_source_take(&source, fd);

	*out = NULL;
	return err ? err : mlk_reader_open_source(out, &source);
}

int mlk_reader_open_mem(struct mlk_reader **out, const void *buf, size_t len)
{
	return mlk_reader_open_source(out, &(struct mlk_source){.fd = -1, .mem = buf, .size = len});
}

int mlk_reader_clone(struct mlk_reader **out, const struct mlk_reader *r)
{
	struct mlk_reader *clone = calloc(1, sizeof(*clone));
	int err;

	*out = NULL;
	if (!clone)
		return -ENOMEM;
	err = mlk_chunks_share(&clone->chunks, &r->chunks);
	if (err) {
		free(clone);
		return err;
	}
	clone->meta = r->meta; /* its strings are @r's */
	clone->meta_read = true;
	mlk_reader_rewind(clone, MLK_RECORD_ALL);
	*out = clone;
	return 0;
}

const struct mlk_meta *mlk_reader_meta(const struct mlk_reader *r)
{
	return &r->meta;
}

struct mlk_header mlk_reader_header(const struct mlk_reader *r)
{
	return r->chunks.file;
}

const struct mlk_condition *mlk_reader_condition(const struct mlk_reader *r)
{
	return &r->chunks.condition;
}

int mlk_reader_stat(const struct mlk_reader *r, struct stat *st)
{
	return fstat(r->chunks.source.fd, st) ? -errno : 0;
}

bool mlk_reader_is_growing(const struct mlk_reader *r)
{
	int fd = r->chunks.source.fd;

	if (fd < 0)
		return false;
	if (flock(fd, LOCK_SH | LOCK_NB))
		return errno == EWOULDBLOCK;
	flock(fd, LOCK_UN);
	return false;
}

uint64_t mlk_reader_size(const struct mlk_reader *r)
{
	return r->chunks.source.size;
}

uint64_t mlk_reader_offset(const struct mlk_reader *r)
{
	return r->chunks.chunk_at;
}

void mlk_reader_free(struct mlk_reader *r)
{
	if (!r)
		return;
	mlk_chunks_release(&r->chunks);
	mlk_decoder_release(&r->events);
	mlk_arena_release(&r->meta_text);
	mlk_arena_release(&r->text);
	free(r->mappings);
	free(r->names.names);
	mlk_reach_room_release(&r->reach);
	mlk_heap_room_release(&r->heap);
	mlk_smaps_room_release(&r->smaps);
	mlk_unwound_release(&r->unwound);
	mlk_sum_release(&r->summary);
	free(r->list.all);
	free(r);
}
