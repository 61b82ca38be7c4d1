/* screen.h - `mleak top` on a terminal: a table that is drawn anew, and keys */
#ifndef REPORT_TOP_SCREEN_H
#define REPORT_TOP_SCREEN_H

#include "report/top/top_source.h"
#include "report/top/top_view.h"

/* Can there be a screen: are stdin and stdout a terminal that moves its cursor? */
bool screen_possible(void);

/*
 * Show @view, of @source, until a key or a signal asks for the end.  *@quit: it was a key, and the
 * recording may go on.  Returns 0, -ENOMEM, the -errno of read(2), or -ENOTTY: the terminal cannot
 * do it, and nothing was shown.
 */
int screen_run(struct top_view *view, struct top_source *source, bool *quit);

#endif
