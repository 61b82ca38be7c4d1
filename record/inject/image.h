/* image.h - the code that is put into a target: what mleak has in itself of it */
#ifndef RECORD_INJECT_IMAGE_H
#define RECORD_INJECT_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "record/injected/injected.h"

/* What operators new that do not throw have behind the name of the one that does. */
#define IMAGE_NOTHROW "RKSt9nothrow_t"

/* In the place of an enum event_func: what the loader calls when modules have come or gone. */
#define IMAGE_LOADER 1000u

/*
 * The image, to be mapped as one block of all_bytes: text_bytes of @bytes to read and execute, then
 * data_bytes of what follows there, to read and write, then zero, the same.  All are multiples of a
 * page.  Where it lies does not matter.
 */
struct image {
	const uint8_t *bytes; /* text and data; they stay */
	size_t text_bytes, data_bytes, all_bytes;
	size_t injected; /* where struct injected is in the block, */
	size_t own;	 /* and union injected_own, */
	size_t threads;	 /* and struct injected_thread, */
	size_t nr_threads;
	size_t memory_bytes; /* what struct injected's memory is to have; hardly any is touched */
	size_t stubs[INJECTED_NR_STUBS];
};

/* Fill @out.  NULL, or why the image cannot be used: static text that reads behind "the code to be
 * injected ". */
const char *image_get(struct image *out);

/* The number of the stub for @name, a function of the target that is @func, an enum event_func or
 * IMAGE_LOADER; it tells operators new that may throw.  -1: there is none. */
int image_stub_for(uint32_t func, const char *name);

#endif
