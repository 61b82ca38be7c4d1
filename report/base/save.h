/* save.h - bytes that this program keeps for itself: structures as they are in memory
 *
 * What is read may be of somebody else: it is within bounds, and all else is to be examined.
 */
#ifndef REPORT_SAVE_H
#define REPORT_SAVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many bytes are made or read at most: they are in memory beside what they are made of. */
#define SAVE_MOST ((size_t)256 << 20)

/* Bytes being made; all zero: none yet. */
struct save {
	uint8_t *bytes;
	size_t len, room;
	bool failed; /* memory was short, or they are too many: some are missing */
};

/* Append @len bytes at @from. */
void save_put(struct save *save, const void *from, size_t len);

/* Append how many things there are, and @nr of them, of @size bytes each. */
void save_array(struct save *save, const void *all, size_t nr, size_t size);

/* Release the bytes: then there are none. */
void save_release(struct save *save);

/* Bytes being read. */
struct load {
	const uint8_t *at, *end;
	bool bad; /* more was asked for than there is */
};

/* Read the next @len bytes into @to.  False: there are not so many, and @to is zero. */
bool load_get(struct load *load, void *to, size_t len);

/* Read how many things of at least @size bytes each come next; 0 if there cannot be so many. */
size_t load_count(struct load *load, size_t size);

/* The next @nr things of @size bytes, which may lie at any address, and are valid as long as the
 * bytes are; NULL if there are not so many. */
const void *load_bytes(struct load *load, size_t nr, size_t size);

#endif
