/* lsan_cases.cc - has the case that the first argument names, and ends
 *
 * The second argument is a library with a large thread-local array.  It says on stdout how many
 * blocks are lost, and lost with others, and how many bytes these have; without arguments, the
 * names of all cases.
 */
#include "lsan_cases.h"

const char *library;
pthread_key_t key;
std::atomic<int> arrived;

static const struct lsan_case *const lists[] = {memory_cases, stack_cases, thread_cases,
						process_cases, missed_cases};

int main(int argc, char **argv)
{
	library = argc > 2 ? argv[2] : "";
	if (pthread_key_create(&key, NULL))
		return 98;
	for (const struct lsan_case *list : lists)
		for (const struct lsan_case *c = list; c->name; c++) {
			if (argc < 2) {
				say("%s\n", c->name);
			} else if (!strcmp(c->name, argv[1])) {
				c->run();
				/* what frames have left is what the last ones are about */
				if (list != missed_cases)
					scrub();
				return 0;
			}
		}
	return argc < 2 ? 0 : 97;
}
