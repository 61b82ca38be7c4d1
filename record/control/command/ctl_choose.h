/* ctl_choose.h - the actions of `mleak ctl` that choose what is recorded */
#ifndef RECORD_CTL_CHOOSE_H
#define RECORD_CTL_CHOOSE_H

#include "cmdline/options.h"
#include "record/control/client.h"

/* Keys of the actions. */
enum ctl_key {
	CTL_THREAD = 256,
	CTL_PROCESS,
	CTL_SITE,
	CTL_TRIGGER,
	CTL_MARK,
	CTL_SWITCH,
	CTL_REACH,
	CTL_STATUS
};

/* Who is asked. */
struct ctl_asked {
	pid_t pid; /* as it was named: the recorder, or a process that it records */
	struct control_peer peer;
};

/* Say why the recorder refused, if @result of control_ask() says so.  Returns 0 or -errno. */
int ctl_explain(const struct ctl_asked *c, int result);

/* Ask, and say what is refused.  It is 0 or -errno. */
#define ctl_ask(c, ...) ctl_explain(c, control_ask(&(c)->peer, __VA_ARGS__))

/* Choose what @option, --thread, --process or --site, with its value @text says.  Returns 0, or
 * -errno after one sentence was logged. */
int ctl_choose(struct ctl_asked *c, const struct option_info *option, const char *text);

#endif
