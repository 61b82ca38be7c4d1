/* helper_serve.h - the requests that the helper serves, and which it refuses */
#ifndef RECORD_HELPER_SERVE_H
#define RECORD_HELPER_SERVE_H

#include "record/privilege/helper.h"

/* For helper_start(). */
void helper_serve(int socket, const struct helper_opts *opts);

#endif
