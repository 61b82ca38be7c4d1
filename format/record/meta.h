/* meta.h - what a trace says of its recording, doc/trace-format.md 2 and 4.1: encoder */
#ifndef MLK_META_H
#define MLK_META_H

#include <stdbool.h>
#include <stdint.h>

#include "format/chunk/codec.h"
#include "format/trace.h"

/* False: a string is too long, or the stack mode is none. */
bool mlk_meta_is_valid(const struct mlk_meta *m);

/* Write the file's header at the beginning of @fd.  0 or -errno. */
int mlk_meta_write_header(int fd, uint32_t salt, const struct mlk_meta *m);

/* Append the payload of a META chunk to @e. */
void mlk_meta_encode(struct mlk_enc *e, const struct mlk_meta *m);

#endif
