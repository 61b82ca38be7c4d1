/* save.c - see save.h */
#include "report/base/save.h"

#include <stdlib.h>
#include <string.h>

#include "report/base/array.h"

void save_put(struct save *save, const void *from, size_t len)
{
	uint8_t *bytes = save->failed || len > SAVE_MOST - save->len
				 ? NULL
				 : array_grow(save->bytes, &save->room, save->len + len, 1);

	if (!bytes) {
		save->failed = true;
		return;
	}
	save->bytes = bytes;
	if (len)
		memcpy(bytes + save->len, from, len);
	save->len += len;
}

void save_array(struct save *save, const void *all, size_t nr, size_t size)
{
	const uint64_t count = nr;

	save_put(save, &count, sizeof(count));
	save_put(save, all, nr * size);
}

void save_release(struct save *save)
{
	free(save->bytes);
	*save = (struct save){0};
}

const void *load_bytes(struct load *load, size_t nr, size_t size)
{
	const uint8_t *at = load->at;

	if (load->bad || nr > (size_t)(load->end - at) / size) {
		load->bad = true;
		return NULL;
	}
	load->at += nr * size;
	return at;
}

bool load_get(struct load *load, void *to, size_t len)
{
	const void *from = load_bytes(load, len, 1);

	if (from)
		memcpy(to, from, len);
	else
		memset(to, 0, len);
	return from;
}

size_t load_count(struct load *load, size_t size)
{
	uint64_t nr;

	if (!load_get(load, &nr, sizeof(nr)) || nr > (uint64_t)(load->end - load->at) / size) {
		load->bad = true;
		return 0;
	}
	return (size_t)nr;
}
