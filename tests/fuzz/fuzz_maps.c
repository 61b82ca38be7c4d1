/* fuzz_maps.c - the text of /proc/PID/maps, and the payloads of MAPS, THREADS, META and LOSSES
 *
 * The first byte says what follows: 0 a text, of which the lines behind an empty one are new
 * mappings; else the payload of a chunk.  What the text becomes is written as a trace and read.
 */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format/writer.h"
#include "record/target/maps.h"
#include "tests/fuzz/records.h"

#define MEMORY_MAX (64u << 20)

static void check_table(const struct maps *maps)
{
	uint64_t before = 0;

	for (size_t i = 0; i < maps->nr; i++) {
		const struct mlk_mapping *m = &maps->v[i];

		FUZZ_CHECK(m->start >= before && m->end > m->start);
		FUZZ_CHECK(maps_find(maps, m->start) == m && maps_find(maps, m->end - 1) == m);
		FUZZ_CHECK(strlen(m->path) <= MLK_MAX_STRING && !strchr(m->path, '\n'));
		before = m->end;
	}
}

static bool same(const struct mlk_mapping *a, const struct mlk_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->inode == b->inode && a->dev_major == b->dev_major &&
	       a->dev_minor == b->dev_minor && a->perms == b->perms && a->id.len == b->id.len &&
	       !strcmp(a->path, b->path);
}

static void check_read_back(const uint8_t *trace, size_t len, const struct maps *maps)
{
	struct mlk_reader *r;
	struct mlk_record rec;

	FUZZ_CHECK(mlk_reader_open_mem(&r, trace, len) == 0);
	FUZZ_CHECK(mlk_reader_next(r, &rec) == 1 && rec.type == MLK_RECORD_MAPS);
	FUZZ_CHECK(rec.maps.nr == maps->nr && rec.maps.time_ns == 99 && rec.maps.tgid == 7);
	for (size_t i = 0; i < maps->nr; i++)
		FUZZ_CHECK(same(&rec.maps.mappings[i], &maps->v[i]));
	mlk_reader_free(r);
}

/* Write @maps as a trace, and compare with what the reader makes of it. */
static void write_and_read(const struct maps *maps)
{
	static const struct mlk_meta meta = {.tgid = 7};
	const struct mlk_maps snapshot = {
		.tgid = 7, .time_ns = 99, .nr = maps->nr, .mappings = maps->v};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct mlk_writer *w;
	uint8_t *trace;
	off_t len;

	FUZZ_CHECK(fd >= 0 && mlk_writer_open(&w, fd, &meta, 1) == 0);
	FUZZ_CHECK(mlk_writer_maps(w, &snapshot) == 0);
	FUZZ_CHECK(mlk_writer_finish(w, MLK_END_EXITED, 0) == 0);
	mlk_writer_free(w);
	len = lseek(fd, 0, SEEK_END);
	trace = mmap(NULL, (size_t)len, PROT_READ, MAP_SHARED, fd, 0);
	FUZZ_CHECK(trace != MAP_FAILED);
	check_read_back(trace, (size_t)len, maps);
	munmap(trace, (size_t)len);
	close(fd);
}

/* Mappings come and go: those of @added on top of @maps. */
static void add_all(struct maps *maps, const struct maps *added)
{
	for (size_t i = 0; i < added->nr; i++) {
		const struct mlk_mapping *m = &added->v[i], *found;

		maps_overlaps(maps, m);
		FUZZ_CHECK(maps_add(maps, m) == 0);
		check_table(maps);
		found = maps_find(maps, m->start);
		FUZZ_CHECK(found && same(found, m));
		FUZZ_CHECK(!maps_overlaps(maps, m));
	}
}

static void run_text(const uint8_t *bytes, size_t len)
{
	struct maps maps = {0}, added = {0};
	char *text = malloc(len + 1), *more;

	FUZZ_CHECK(text);
	memcpy(text, bytes, len);
	text[len] = '\0';
	more = strstr(text, "\n\n");
	if (more) {
		*more = '\0';
		/* Each line for itself: they need not ascend. */
		for (char *line = more + 2, *next; line; line = next) {
			next = strchr(line, '\n');
			if (next)
				*next++ = '\0';
			maps_clear(&added);
			FUZZ_CHECK(maps_parse(&added, line) == 0);
			check_table(&added);
			FUZZ_CHECK(added.nr <= 1);
			add_all(&maps, &added);
		}
		maps_clear(&maps);
		FUZZ_CHECK(maps_parse(&maps, text) == 0);
		check_table(&maps);
		add_all(&maps, &added);
	} else {
		FUZZ_CHECK(maps_parse(&maps, text) == 0);
		check_table(&maps);
	}
	write_and_read(&maps);
	maps_release(&maps);
	maps_release(&added);
	free(text);
}

static void run_payload(uint64_t which, const uint8_t *bytes, size_t len)
{
	static const uint16_t types[] = {MLK_CHUNK_MAPS,   MLK_CHUNK_THREADS, MLK_CHUNK_META,
					 MLK_CHUNK_LOSSES, MLK_CHUNK_MODULE,  MLK_CHUNK_END};
	struct mlk_chunk h = {.type = types[which % 6], .raw_len = (uint32_t)len};
	struct fuzz_seen seen, again;
	struct mlk_enc trace = {0};
	struct mlk_reader *r;
	int err;

	fuzz_file_header(&trace, 0);
	fuzz_chunk(&trace, h, bytes, len);
	FUZZ_CHECK(!trace.failed);
	err = mlk_reader_open_mem(&r, trace.buf, trace.len);
	FUZZ_CHECK(!err || err == MLK_E_EMPTY);
	if (!err) {
		seen = fuzz_read_all(r, MLK_RECORD_ALL);
		again = fuzz_read_all(r, MLK_RECORD_ALL);
		FUZZ_CHECK(!memcmp(&seen, &again, sizeof(seen)));
		FUZZ_CHECK(mlk_reader_condition(r)->chunks + mlk_reader_condition(r)->chunks_lost ==
			   1);
		mlk_reader_free(r);
	}
	mlk_enc_release(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_memory_limit(MEMORY_MAX);
	if (!size || size > MLK_RAW_MAX)
		return 0;
	if (data[0])
		run_payload(data[0], data + 1, size - 1);
	else
		run_text(data + 1, size - 1);
	return 0;
}
