/* helper_wire.h - what the recorder and its helper say to each other: one build talking to itself
 */
#ifndef RECORD_HELPER_WIRE_H
#define RECORD_HELPER_WIRE_H

#include <stdint.h>

#include "record/privilege/helper.h"

/* Sent first, to one that knows nothing yet.  The arrays follow: each number in a message of its
 * own, that of a program with the program. */
struct helper_setup {
	struct helper_opts opts;
};

/* What is requested: each is the call of helper.h with that name. */
enum helper_op {
	HELPER_OPEN,
	HELPER_OPEN_MAPPED,
	HELPER_READ,
	HELPER_SYSCALL,
	HELPER_ROOTS,
	HELPER_FREEZE,
	HELPER_LINK,
	HELPER_LISTEN,
	HELPER_HOLD,
	HELPER_LET_GO,
	HELPER_SIGNAL,
	HELPER_EJECT,
	HELPER_INJECT,
};

/* What a helper_link says of its probes; of the arrays the first nr are set.  The descriptor of its
 * file goes with the message. */
struct helper_probes {
	int32_t program;
	uint32_t nr;
	bool is_return, multi, session, keeps;
	uint64_t offsets[HELPER_MAX_PROBES], cookies[HELPER_MAX_PROBES];
};

/* What the recorder asks for, always sent whole; members that the request does not need mean
 * nothing. */
struct helper_request {
	enum helper_op op;
	struct helper_task of;
	uint64_t addr; /* HELPER_OPEN_MAPPED, HELPER_READ; HELPER_FREEZE: the room */
	uint32_t len;  /* HELPER_READ */
	int32_t what;  /* HELPER_OPEN: enum helper_file; HELPER_SIGNAL: the signal; HELPER_LISTEN:
			  the CPU */
	union {
		struct helper_probes probes;
		uint8_t library[HELPER_MAX_READ]; /* HELPER_INJECT */
	};
};

/* A descriptor may come with it; then the result is 0. */
struct helper_reply {
	int32_t result;
	uint8_t bytes[HELPER_MAX_READ];
};

/* Send @len bytes, and @fd if that is not negative, over the socket.  Returns 0 or -errno. */
int helper_send(int socket, const void *data, size_t len, int fd);

/* Receive one message of exactly @len bytes; *@fd is what came with it, or -1.  Returns 0 or
 * -errno, -EPIPE when the other end is closed. */
int helper_receive(int socket, void *data, size_t len, int *fd);

#endif
