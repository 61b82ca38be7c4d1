/* frame_size.h - how large the frame of a function is, by its first instructions */
#ifndef RECORD_FRAME_SIZE_H
#define RECORD_FRAME_SIZE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of a function that frame_size() looks at. */
#define FRAME_SIZE_CODE 128

/*
 * The bytes below the return address of the frame of a function that begins with the @len bytes at
 * @code: where HotSpot's compilers save rbp and then take a fixed frame, without a frame pointer.
 * 0: it does otherwise.
 */
uint32_t frame_size(const uint8_t *code, size_t len);

#endif
