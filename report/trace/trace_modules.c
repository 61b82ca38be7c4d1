/* trace_modules.c - see trace_modules.h */
#include "report/trace/trace_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"
#include "report/base/hash_index.h"

#define ABSENT DWUNW_FOREIGN_MODULE /* of a frame's module: the rest is a number of images */

#define REMARK                                                                             \
	(DWUNW_FOREIGN_MODULE + IMAGES_MAX + IMAGES_MAX_NAMES + 1) /* in place of a module \
								    */

_Static_assert(IMAGES_MAX + IMAGES_MAX_NAMES < ABSENT, "numbers and this bit are apart");

struct image_key {
	const struct mlk_id *id;
	const char *path;
};

int trace_modules_new(struct trace_modules **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

static size_t id_len(const struct mlk_id *id)
{
	return id->len < MLK_MAX_ID ? id->len : MLK_MAX_ID;
}

static uint64_t hash_key(const struct image_key *key)
{
	return key->id->len ? hash_bytes(1, key->id->bytes, id_len(key->id))
			    : hash_text(0, key->path);
}

static bool same_module(const void *things, uint32_t number, const void *arg)
{
	const struct trace_module *image = &((const struct trace_modules *)things)->all[number];
	const struct image_key *key = arg;

	if (image->id.len != key->id->len)
		return false;
	if (!key->id->len)
		return !strcmp(image->path, key->path);
	return !memcmp(image->id.bytes, key->id->bytes, id_len(key->id));
}

static struct hash_query query_of(const struct trace_modules *images, const struct image_key *key)
{
	return (struct hash_query){
		.hash = hash_key(key),
		.things = images,
		.key = key,
		.equal = same_module,
	};
}

/* trace_modules_intern(), where there is room for more if @is_room. */
static int intern_module(struct trace_modules *images, const struct mlk_id *id, const char *path,
			 bool is_room, uint32_t *number)
{
	struct image_key key = {.id = id, .path = path};
	struct hash_query query = query_of(images, &key);
	struct trace_module module = {.id = *id, .module = DWUNW_NO_MODULE};
	int added;

	if (hash_index_find(&images->index, &query, number))
		return 0;
	if (!is_room) {
		images->overflown = true;
		*number = DWUNW_NO_MODULE;
		return 0;
	}
	module.path = strdup(path);
	added = module.path ? intern(&images->table, &query, &module, sizeof(module), number)
			    : -ENOMEM;
	if (added < 0)
		free(module.path);
	return added < 0 ? added : 0;
}

int trace_modules_intern(struct trace_modules *images, const struct mlk_id *id, const char *path,
			 uint32_t *number)
{
	return intern_module(images, id, path, images->nr - images->nr_names < IMAGES_MAX, number);
}

int trace_modules_intern_name(struct trace_modules *images, const char *name, uint32_t *number)
{
	const size_t nr = images->nr;
	int err = intern_module(images, &(struct mlk_id){0}, name,
				images->nr_names < IMAGES_MAX_NAMES, number);

	images->nr_names += images->nr > nr;
	return err;
}

static void drop_bytes(struct trace_modules *images, struct trace_module *image)
{
	images->bytes -= image->len;
	free(image->bytes);
	image->bytes = NULL;
	image->len = 0;
	image->room = 0;
}

static bool piece_fits(const struct trace_modules *images, const struct trace_module *image,
		       const struct mlk_module *piece)
{
	return piece->image_len == image->whole && piece->offset == image->len &&
	       piece->piece_len <= image->whole - image->len &&
	       piece->piece_len <= IMAGES_MAX_BYTES - images->bytes;
}

int trace_modules_add_piece(struct trace_modules *images, const struct mlk_module *piece)
{
	struct trace_module *image;
	uint32_t number;
	uint8_t *bytes;
	int err;

	err = trace_modules_intern(images, &piece->id, piece->path, &number);
	if (err || number == DWUNW_NO_MODULE)
		return err;
	image = &images->all[number];
	if (!piece->image_len || !piece->piece_len || (image->whole && image->len == image->whole))
		return 0; /* nothing in it, or nothing new */
	if (!piece->offset) {
		drop_bytes(images, image);
		image->whole = piece->image_len;
		image->broken = false;
	}
	if (image->broken || !piece_fits(images, image, piece)) {
		image->broken = true;
		drop_bytes(images, image);
		return 0;
	}
	/* the room grows with what is really there, not with what the trace promises */
	bytes = array_grow(image->bytes, &image->room, image->len + piece->piece_len, 1);
	if (!bytes)
		return -ENOMEM;
	memcpy(bytes + image->len, piece->piece, piece->piece_len);
	image->bytes = bytes;
	image->len += piece->piece_len;
	images->bytes += piece->piece_len;
	return 0;
}

static uint64_t read_le(const uint8_t *at, int bytes)
{
	uint64_t value = 0;

	for (int i = bytes - 1; i >= 0; i--)
		value = value << 8 | at[i];
	return value;
}

/* Say to @dw what the file without build-id was that @image is of; its id tells.  In the second in
 * which the recording began, the file may have been written again since. */
static void tell_state(const struct trace_modules *images, const struct trace_module *image,
		       struct dwunw *dw)
{
	const uint8_t *id = image->id.bytes;
	struct dwunw_file_state state;

	if (id_len(&image->id) != MLK_MAX_ID || id[0] != MLK_ID_FILE)
		return;
	state.inode = read_le(id + 9, 8);
	state.size = read_le(id + 17, 8);
	state.modified = read_le(id + 25, 7);
	state.latest_ns =
		state.modified > images->began_ns / 1000000000 ? UINT64_MAX : images->began_ns;
	dwunw_file_state_set(dw, image->module, &state);
}

/* Give the image to @dw, or else the file that was mapped, if it is here and the same. */
static int load_one(const struct trace_modules *images, struct trace_module *image,
		    struct dwunw *dw)
{
	int err = -ENOENT;

	if (image->whole && !image->broken && image->len == image->whole)
		err = dwunw_module_add(dw, &image->module, image->path, image->bytes, image->len);
	if (!err)
		tell_state(images, image, dw);
	if (err && err != -ENOMEM && image->id.len > 1 && image->path[0] == '/' &&
	    image->id.bytes[0] == MLK_ID_BUILD_ID)
		err = dwunw_module_open(dw, &image->module, image->path, image->id.bytes + 1,
					id_len(&image->id) - 1);
	if (err)
		image->module = DWUNW_NO_MODULE;
	return err == -ENOMEM ? err : 0;
}

/* Note that the unwinder calls module @number @module. */
static int note_number(struct trace_modules *images, uint32_t module, uint32_t number)
{
	int err = array_cover(&images->numbers, &images->nr_numbers, (size_t)module + 1,
			      sizeof(*images->numbers));

	if (!err && !images->numbers[module])
		images->numbers[module] = number + 1;
	return err;
}

int trace_modules_load(struct trace_modules *images, struct dwunw *dw)
{
	int err = 0;

	for (uint32_t i = 0; i < images->nr && !err; i++) {
		struct trace_module *image = &images->all[i];

		if (image->module != DWUNW_NO_MODULE ||
		    (image->tried && image->tried_len == image->len))
			continue;
		image->tried = true;
		image->tried_len = image->len;
		err = load_one(images, image, dw);
		if (!err && image->module != DWUNW_NO_MODULE)
			err = note_number(images, image->module, i);
	}
	return err;
}

uint32_t trace_modules_absent(uint32_t number)
{
	return number | ABSENT;
}

const char *trace_modules_absent_path(const struct trace_modules *images, uint32_t module)
{
	uint32_t number = module & ~ABSENT;

	return module & ABSENT && number < images->nr ? images->all[number].path : NULL;
}

bool trace_modules_find(const struct trace_modules *images, const struct mlk_id *id,
			const char *path, uint32_t *module)
{
	struct image_key key = {.id = id, .path = path};
	struct hash_query query = query_of(images, &key);
	uint32_t number;

	if (!hash_index_find(&images->index, &query, &number))
		return false;
	*module = images->all[number].module;
	if (*module == DWUNW_NO_MODULE)
		*module = trace_modules_absent(number);
	return true;
}

bool trace_modules_find_path(const struct trace_modules *images, const char *path, uint32_t *module)
{
	for (size_t i = 0; i < images->nr; i++)
		if (images->all[i].module != DWUNW_NO_MODULE &&
		    !strcmp(images->all[i].path, path)) {
			*module = images->all[i].module;
			return true;
		}
	return false;
}

bool trace_modules_number(const struct trace_modules *images, uint32_t module, uint32_t *number)
{
	if (module == DWUNW_NO_MODULE)
		return false;
	if (module & ABSENT) {
		*number = module & ~ABSENT;
		return *number < images->nr;
	}
	if (module >= images->nr_numbers || !images->numbers[module])
		return false;
	*number = images->numbers[module] - 1;
	return true;
}

int trace_modules_remark(struct trace_modules *images, const char *text, struct dwunw_frame *frame)
{
	int err = images->remarks ? 0 : strings_new(&images->remarks);
	uint32_t number;

	if (!err)
		err = strings_intern(images->remarks, text, &number);
	if (!err)
		*frame = (struct dwunw_frame){.pc = number, .addr = number, .module = REMARK};
	return err;
}

const char *trace_modules_remark_text(const struct trace_modules *images,
				      const struct dwunw_frame *frame)
{
	return frame->module == REMARK && images->remarks && frame->addr < images->remarks->nr
		       ? images->remarks->all[frame->addr]
		       : NULL;
}

const struct mlk_id *trace_modules_id(const struct trace_modules *images, uint32_t module)
{
	uint32_t number;

	return trace_modules_number(images, module, &number) ? &images->all[number].id : NULL;
}

void trace_modules_free(struct trace_modules *images)
{
	if (!images)
		return;
	for (size_t i = 0; i < images->nr; i++) {
		free(images->all[i].path);
		free(images->all[i].bytes);
	}
	intern_release(&images->table);
	free(images->numbers);
	strings_free(images->remarks);
	interpreted_release(&images->interpreted);
	free(images);
}
