/* print_pprof.c - a profile for pprof and all that reads its format
 *
 * The messages are built in one arena and refer to each other by numbers; location, function and
 * place of a view have the same number, plus 1 as 0 means none.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "mleak.h"
#include "report/base/array.h"
#include "report/base/strings.h"
#include "report/base/text.h"
#include "report/context/report_data.h"
#include "report/machine/profile.pb-c.h"

/* Of a sample, as pprof has them: allocated, in use; objects, then bytes.  Between them what is
 * lost, if that is known. */
#define MOST_VALUES 6
#define PIECE	    ((size_t)1 << 20) /* bytes given to zlib at once: it counts in 32 bits */

/* Compress what @z has as input, to its end if @flush says so. */
static void push_gzip(z_stream *z, FILE *out, int flush)
{
	unsigned char buf[16384];

	do {
		z->next_out = buf;
		z->avail_out = sizeof(buf);
		deflate(z, flush);
		fwrite(buf, 1, sizeof(buf) - z->avail_out, out);
	} while (!z->avail_out);
}

/* Write the @len bytes at @bytes to @out as one gzip member, the same for the same bytes. */
static int gzip_write(FILE *out, const void *bytes, size_t len)
{
	z_stream z;

	memset(&z, 0, sizeof(z));
	/* 16 more than the window's bits: a gzip header, without name and time */
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return -ENOMEM;
	for (size_t at = 0; at < len; at += PIECE) {
		size_t left = len - at;

		z.next_in = (unsigned char *)bytes + at;
		z.avail_in = (uInt)(left < PIECE ? left : PIECE);
		push_gzip(&z, out, Z_NO_FLUSH);
	}
	push_gzip(&z, out, Z_FINISH);
	deflateEnd(&z);
	return 0;
}

struct builder {
	const struct report_data *export;
	struct strings *strings;
	struct strings *modules; /* the number of a path is that of its mapping */
	void **arena;		 /* what was allocated */
	size_t nr_arena, room_arena;
	bool failed;
	Pprof__Profile profile;
};

/* Zeroed memory for @nr things of @size bytes, until the builder is released; NULL: failed. */
static void *get_memory(struct builder *b, size_t nr, size_t size)
{
	void *memory = calloc(nr ? nr : 1, size);

	if (memory &&
	    !array_append(&b->arena, &b->nr_arena, &b->room_arena, &memory, sizeof(memory)))
		return memory;
	free(memory);
	b->failed = true;
	return NULL;
}

static int64_t text_number_of(struct builder *b, const char *text)
{
	uint32_t number = 0;

	if (strings_intern(b->strings, text, &number))
		b->failed = true;
	return number;
}

static uint64_t mapping_of(struct builder *b, const char *path)
{
	uint32_t number = 0;

	if (strings_intern(b->modules, path, &number))
		b->failed = true;
	return number;
}

static size_t nr_values(const struct builder *b)
{
	return b->export->by_verdict ? MOST_VALUES : MOST_VALUES - 2;
}

/* The types of the values, the last one to be shown first, and what a period is. */
static void set_types(struct builder *b)
{
	static const char *const names[MOST_VALUES][2] = {
		{"alloc_objects", "count"}, {"alloc_space", "bytes"},	{"lost_objects", "count"},
		{"lost_space", "bytes"},    {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
	Pprof__Profile *p = &b->profile;
	Pprof__ValueType *types = get_memory(b, MOST_VALUES + 1, sizeof(*types));
	size_t nr = nr_values(b);

	p->sample_type = get_memory(b, nr, sizeof(*p->sample_type));
	if (b->failed)
		return;
	for (size_t i = 0; i < nr; i++) {
		const char *const *name = names[i < 2 ? i : i + MOST_VALUES - nr];

		pprof__value_type__init(&types[i]);
		types[i].type = text_number_of(b, name[0]);
		types[i].unit = text_number_of(b, name[1]);
		p->sample_type[i] = &types[i];
	}
	p->n_sample_type = nr;
	p->default_sample_type = types[nr - 1].type;
	pprof__value_type__init(&types[nr]);
	types[nr].type = text_number_of(b, "space");
	types[nr].unit = text_number_of(b, "bytes");
	p->period_type = &types[nr];
	p->period = 1;
}

/* Of several processes, say which one it is of, as pprof's -tagroot, -tagfocus and -tags take. */
static void set_labels(struct builder *b, size_t i, Pprof__Sample *sample)
{
	const char *process = report_data_process(b->export, i);
	Pprof__Label *labels;

	if (!process)
		return;
	labels = get_memory(b, 2, sizeof(*labels));
	sample->label = get_memory(b, 2, sizeof(*sample->label));
	if (b->failed)
		return;
	pprof__label__init(&labels[0]);
	labels[0].key = text_number_of(b, "process");
	labels[0].str = text_number_of(b, process);
	pprof__label__init(&labels[1]);
	labels[1].key = text_number_of(b, "pid");
	labels[1].num = report_data_pid(b->export, i);
	sample->label[0] = &labels[0];
	sample->label[1] = &labels[1];
	sample->n_label = 2;
}

static void set_sample(struct builder *b, size_t i, Pprof__Sample *sample)
{
	const struct stack *stack = view_stack(b->export->view, i);
	size_t nr, value = 0;
	const uint32_t *path = places_path(b->export->places, i, &nr);

	pprof__sample__init(sample);
	sample->location_id = get_memory(b, nr, sizeof(*sample->location_id));
	sample->value = get_memory(b, nr_values(b), sizeof(*sample->value));
	if (b->failed)
		return;
	for (size_t at = 0; at < nr; at++)
		sample->location_id[at] = (uint64_t)path[at] + 1;
	sample->n_location_id = nr;
	sample->value[value++] = (int64_t)stack->allocated.blocks;
	sample->value[value++] = (int64_t)stack->allocated.bytes;
	if (b->export->by_verdict) {
		sample->value[value++] = (int64_t)stack->lost.blocks;
		sample->value[value++] = (int64_t)stack->lost.bytes;
	}
	sample->value[value++] = (int64_t)stack->blocks;
	sample->value[value++] = (int64_t)stack->bytes;
	sample->n_value = value;
	set_labels(b, i, sample);
}

static void set_samples(struct builder *b)
{
	size_t nr = b->export->view->nr;
	Pprof__Sample *samples = get_memory(b, nr, sizeof(*samples));
	Pprof__Profile *p = &b->profile;

	p->sample = get_memory(b, nr, sizeof(*p->sample));
	for (size_t i = 0; i < nr && !b->failed; i++) {
		set_sample(b, i, &samples[i]);
		p->sample[i] = &samples[i];
	}
	p->n_sample = nr;
}

/* Location, line and function of a place. */
struct spot {
	Pprof__Location location;
	Pprof__Line line;
	Pprof__Line *lines;
	Pprof__Function function;
};

static void set_spot(struct builder *b, const struct place *place, uint64_t id, struct spot *spot)
{
	char *name = place_function_marked(place);

	b->failed |= !name;
	pprof__function__init(&spot->function);
	spot->function.id = id;
	spot->function.name = name ? text_number_of(b, name) : 0;
	spot->function.system_name = text_number_of(b, place->function);
	spot->function.filename = text_number_of(b, place->file);
	pprof__line__init(&spot->line);
	spot->line.function_id = id;
	spot->line.line = place->line;
	spot->lines = &spot->line;
	pprof__location__init(&spot->location);
	spot->location.id = id;
	spot->location.mapping_id = mapping_of(b, place->module);
	spot->location.line = &spot->lines;
	spot->location.n_line = 1;
	free(name);
}

static void set_places(struct builder *b)
{
	size_t nr = b->export->places->nr;
	struct spot *spots = get_memory(b, nr, sizeof(*spots));
	Pprof__Profile *p = &b->profile;

	p->location = get_memory(b, nr, sizeof(*p->location));
	p->function = get_memory(b, nr, sizeof(*p->function));
	for (size_t i = 0; i < nr && !b->failed; i++) {
		set_spot(b, &b->export->places->all[i], i + 1, &spots[i]);
		p->location[i] = &spots[i].location;
		p->function[i] = &spots[i].function;
	}
	p->n_location = p->n_function = nr;
}

static void set_mappings(struct builder *b)
{
	size_t nr = b->modules->nr - 1; /* the first one is "" */
	Pprof__Mapping *mappings = get_memory(b, nr, sizeof(*mappings));
	Pprof__Profile *p = &b->profile;

	p->mapping = get_memory(b, nr, sizeof(*p->mapping));
	for (size_t i = 0; i < nr && !b->failed; i++) {
		pprof__mapping__init(&mappings[i]);
		mappings[i].id = i + 1;
		mappings[i].filename = text_number_of(b, b->modules->all[i + 1]);
		mappings[i].has_functions = true;
		mappings[i].has_filenames = true;
		mappings[i].has_line_numbers = true;
		mappings[i].has_inline_frames = true;
		p->mapping[i] = &mappings[i];
	}
	p->n_mapping = nr;
}

/* What was lost is in a comment: the format has no other place for it. */
static void set_origin(struct builder *b)
{
	Pprof__Profile *p = &b->profile;
	char comment[128];

	snprintf(comment, sizeof(comment), "mleak " MLEAK_VERSION ": %llu %s lost in the recording",
		 (unsigned long long)replay_lost(b->export->leaks),
		 replay_lost(b->export->leaks) == 1 ? "event was" : "events were");
	p->comment = get_memory(b, 1, sizeof(*p->comment));
	if (b->failed)
		return;
	p->comment[0] = text_number_of(b, comment);
	p->n_comment = 1;
	p->time_nanos = (int64_t)b->export->meta->realtime_ns;
	p->duration_nanos = (int64_t)report_data_duration(b->export);
}

static void build_profile(struct builder *b)
{
	char *exe = text_escape(b->export->meta->exe);

	pprof__profile__init(&b->profile);
	/* pprof takes the first mapping for the program's */
	if (exe && exe[0])
		mapping_of(b, exe);
	b->failed |= !exe;
	free(exe);
	set_types(b);
	set_samples(b);
	set_places(b);
	set_mappings(b);
	set_origin(b);
	b->profile.string_table = (char **)b->strings->all;
	b->profile.n_string_table = b->strings->nr;
}

static int write_profile(FILE *out, const Pprof__Profile *profile)
{
	size_t len = pprof__profile__get_packed_size(profile);
	uint8_t *bytes = malloc(len);
	int err;

	if (!bytes)
		return -ENOMEM;
	pprof__profile__pack(profile, bytes);
	err = gzip_write(out, bytes, len);
	free(bytes);
	return err;
}

int print_pprof(FILE *out, const struct report_data *export)
{
	struct builder b = {.export = export};
	int err = strings_new(&b.strings);

	if (!err)
		err = strings_new(&b.modules);
	if (!err)
		build_profile(&b);
	if (!err)
		err = b.failed ? -ENOMEM : write_profile(out, &b.profile);
	for (size_t i = 0; i < b.nr_arena; i++)
		free(b.arena[i]);
	free(b.arena);
	strings_free(b.modules);
	strings_free(b.strings);
	return err;
}
