/* mode.h - what the assembler and C both know of how far the library has come up */
#ifndef LIBPRELOAD_MODE_H
#define LIBPRELOAD_MODE_H

/* Values of preload_mode. */
#define PRELOAD_UNKNOWN	   0
#define PRELOAD_RECORDED   1 /* or was to be, and the recorder is told why it is not */
#define PRELOAD_UNRECORDED 2 /* nor will be */

#define PRELOAD_ARENA_BYTES 65536 /* of preload_arena */

#endif
