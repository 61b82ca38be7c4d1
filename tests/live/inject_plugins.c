/* inject_plugins.c - loads and unloads plugins that allocate, and counts what they leak
 *
 * Usage: inject_plugins THREADS PLUGIN...  Each line on stdin is answered by "ok BLOCKS BYTES",
 * what was leaked so far.  I is the number of a plugin, N one of blocks of SIZE bytes, FRAME below.
 *   l I      load it; "d I": and it sees its own names first; "m I": and all
 *            that it needs once more
 *   g I N    leak N blocks of it
 *   f I N    allocate N of it, and free them
 *   u I      unload it
 *   c I N    N times: load it, leak a block, and unload it
 *   r I N    the same of this one and the next one in turn, of which one is always loaded
 * THREADS allocate and free by the C library meanwhile.  At the end of stdin the program ends.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noipa))
#define END   __asm__ volatile("" : : : "memory")

enum { SIZE = 1009, MOST = 64 };

static struct plugin {
	const char *path;
	void *library;
	void *(*give)(size_t);
	void (*take)(void *);
} plugins[MOST];

static unsigned long blocks;
static void *volatile kept;

static void must(int right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "%s: %s\n", what, dlerror());
	_exit(97);
}

static void find(struct plugin *p)
{
	must(p->library != NULL, p->path);
	p->give = (void *(*)(size_t))dlsym(p->library, "plugin_gives");
	p->take = (void (*)(void *))dlsym(p->library, "plugin_takes");
	must(p->give && p->take, "a function");
}

static void load(struct plugin *p, int flags)
{
	p->library = dlopen(p->path, RTLD_NOW | flags);
	find(p);
}

static void unload(struct plugin *p)
{
	must(!dlclose(p->library), "dlclose");
}

FRAME static void leak(struct plugin *p, int nr)
{
	for (int i = 0; i < nr; i++) {
		kept = p->give(SIZE);
		must(kept != NULL, "no memory");
		memset(kept, 1, SIZE);
		blocks++;
	}
	END;
}

static void use(struct plugin *p, int nr)
{
	for (int i = 0; i < nr; i++) {
		kept = p->give(SIZE + 1);
		memset(kept, 2, SIZE + 1);
		p->take(kept);
	}
}

static void load_and_unload(struct plugin *p, int nr)
{
	for (int i = 0; i < nr; i++) {
		load(p, 0);
		leak(p, 1);
		unload(p);
	}
}

/* So neither comes to where it was. */
static void take_turns(struct plugin *p, int nr)
{
	load(&p[0], 0);
	for (int i = 0; i < nr; i++) {
		load(&p[(i + 1) % 2], 0);
		leak(&p[(i + 1) % 2], 1);
		unload(&p[i % 2]);
	}
	unload(&p[nr % 2]);
}

static void *churn(void *arg)
{
	for (;;) {
		for (int i = 0; i < 16; i++) {
			unsigned char *block = malloc(100);

			*block = 1;
			free(block);
		}
		usleep(1000);
	}
	return arg;
}

FRAME static void serve(char command, struct plugin *p, int nr)
{
	switch (command) {
	case 'l':
		load(p, 0);
		break;
#ifdef RTLD_DEEPBIND
	case 'd':
		load(p, RTLD_DEEPBIND);
		break;
	case 'm':
		p->library = dlmopen(LM_ID_NEWLM, p->path, RTLD_NOW);
		find(p);
		break;
#endif
	case 'g':
		leak(p, nr);
		break;
	case 'f':
		use(p, nr);
		break;
	case 'u':
		unload(p);
		break;
	case 'c':
		load_and_unload(p, nr);
		break;
	case 'r':
		take_turns(p, nr);
		break;
	default:
		must(0, "a command");
	}
	END;
}

int main(int argc, char **argv)
{
	char line[64], command;
	pthread_t thread;

	for (int i = 2; i < argc && i < MOST + 2; i++)
		plugins[i - 2].path = argv[i];
	for (int i = atoi(argv[1]); i > 0; i--)
		pthread_create(&thread, NULL, churn, NULL);
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int which = 0, nr = 0;

		must(sscanf(line, "%c %d %d", &command, &which, &nr) >= 2, "a line");
		serve(command, &plugins[which], nr);
		printf("ok %lu %lu\n", blocks, blocks * SIZE);
		fflush(stdout);
	}
	return 0;
}
