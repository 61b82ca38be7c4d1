/* reach_exit.c - ends with blocks that nothing points to, and with others
 *
 * Says on stdout how many blocks of each function have which verdict.  The argument says how it
 * ends: _exit, abort, thread (by exit() in another thread), exec (it begins anew, and returns), or by return.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reach_shapes.h"

static FRAME void plant(void)
{
	lost_single();
	lost_list();
	lost_cycle();
	held_by_global();
	held_by_thread_local();
	held_by_key();
	held_by_interior();
	AFTER_CALL();
}

static void *leave(void *arg)
{
	exit(arg ? 5 : 6);
}

static FRAME void tell(void)
{
	say("lost_single lost %d\nlost_list lost 1\nlost_list lost-with 28\n", LEAK_BLOCKS);
	say("lost_cycle lost-with 7\nheld_by_global held 37\nheld_by_thread_local held 11\n");
	say("held_by_key held 13\nheld_by_interior possible 41\n");
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";
	pthread_t thread;

	if (pthread_key_create(&key, NULL))
		return 98;
	if (!strcmp(how, "exec"))
		execl("/proc/self/exe", argv[0], (char *)NULL);
	plant();
	scrub();
	tell();
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "thread")) {
		pthread_create(&thread, NULL, leave, argv);
		pthread_join(thread, NULL);
	}
	return 0;
}
