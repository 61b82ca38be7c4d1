/* helper_wire.c - see helper_wire.h */
#include "record/privilege/helper_wire.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room for the control message of one descriptor. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int))];
};

int helper_send(int socket, const void *data, size_t len, int fd)
{
	union control control = {0};
	struct iovec part = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t n;

	if (fd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	do
		n = sendmsg(socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int helper_receive(int socket, void *data, size_t len, int *fd)
{
	union control control = {0};
	struct iovec part = {.iov_base = data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &part,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n;

	*fd = -1;
	do
		n = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? -errno : -EPIPE;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	if ((size_t)n == len && !(msg.msg_flags & MSG_TRUNC))
		return 0;
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	return -EPROTO;
}
