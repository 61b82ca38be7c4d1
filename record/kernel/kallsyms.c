/* kallsyms.c - see kallsyms.h */
#include "record/kernel/kallsyms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "array.h"

#define NAME_ROOM 512 /* KSYM_NAME_LEN of include/linux/kallsyms.h */

/* A line of /proc/kallsyms: proc(5). */
struct line {
	uint64_t addr;
	char type;
	char name[NAME_ROOM];
	char module[64]; /* "" for the kernel itself */
};

/* Copy the word at @text, which ends at a blank or at @end.  Returns what is behind it. */
static const char *copy_word(const char *text, char end, char *word, size_t room)
{
	size_t len = 0;

	while (text[len] && text[len] != end && !strchr(" \t\n", text[len]))
		len++;
	snprintf(word, room, "%.*s", (int)len, text);
	return text + len;
}

/* No sscanf(): there are a few hundred thousand lines. */
static bool parse(const char *text, struct line *l)
{
	char *at;

	l->module[0] = '\0';
	l->addr = strtoull(text, &at, 16);
	if (at == text || at[0] != ' ' || !at[1] || at[2] != ' ')
		return false;
	l->type = at[1];
	text = copy_word(at + 3, '\0', l->name, sizeof(l->name));
	text += strspn(text, " \t");
	if (*text == '[')
		copy_word(text + 1, ']', l->module, sizeof(l->module));
	return l->name[0] != '\0';
}

static bool is_code(char type)
{
	return strchr("tTwW", type) != NULL;
}

/* Append @name to the names.  Returns its offset in *@at, or -ENOMEM. */
static int add_name(struct kallsyms *k, const char *name, uint32_t *at)
{
	size_t len = strlen(name) + 1;

	if (len > k->names_room - k->names_len) {
		size_t room = k->names_room ? k->names_room * 2 : 1 << 20;
		char *names = realloc(k->names, room);

		if (!names)
			return -ENOMEM;
		k->names = names;
		k->names_room = room;
	}
	memcpy(k->names + k->names_len, name, len);
	*at = (uint32_t)k->names_len;
	k->names_len += len;
	return 0;
}

/* The number of module @name: kallsyms lists each module's functions together. */
static int module_number(struct kallsyms *k, const char *name, uint32_t *number)
{
	struct kallsyms_module *module;

	if (!name[0] && k->nr_modules) {
		*number = KALLSYMS_KERNEL;
		return 0;
	}
	if (k->nr_modules && !strcmp(k->modules[k->nr_modules - 1].name, name)) {
		*number = (uint32_t)k->nr_modules - 1;
		return 0;
	}
	if (grow_array(&k->modules, k->nr_modules, &k->modules_room, sizeof(*k->modules)))
		return -ENOMEM;
	module = &k->modules[k->nr_modules];
	*module = (struct kallsyms_module){.name = strdup(name), .start = UINT64_MAX};
	if (!module->name)
		return -ENOMEM;
	*number = (uint32_t)k->nr_modules++;
	return 0;
}

/* Keep the address of what is of interest by its name. */
static void note_place(struct kallsyms *k, const struct line *l)
{
	const struct {
		const char *name;
		uint64_t *addr;
	} places[] = {{"_text", &k->text},
		      {"vmemmap_base", &k->vmemmap_base},
		      {"page_offset_base", &k->page_offset_base},
		      {"__start_orc_unwind_ip", &k->orc_ip},
		      {"__stop_orc_unwind_ip", &k->orc_ip_end},
		      {"__start_orc_unwind", &k->orc},
		      {"modules", &k->module_list}};

	for (size_t i = 0; !l->module[0] && i < sizeof(places) / sizeof(places[0]); i++)
		if (!strcmp(l->name, places[i].name))
			*places[i].addr = l->addr;
}

static int add_line(struct kallsyms *k, const struct line *l)
{
	struct kallsym *s;
	int err;

	note_place(k, l);
	if (!is_code(l->type))
		return 0;
	if (grow_array(&k->v, k->nr, &k->room, sizeof(*k->v)))
		return -ENOMEM;
	s = &k->v[k->nr];
	s->addr = l->addr;
	err = module_number(k, l->module, &s->module);
	if (!err)
		err = add_name(k, l->name, &s->name);
	if (!err)
		k->nr++;
	return err;
}

static int by_address(const void *a, const void *b)
{
	const struct kallsym *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* Where each module's code lies: to the end of the page in which its last function begins. */
static void bound_modules(struct kallsyms *k)
{
	for (size_t i = 0; i < k->nr; i++) {
		struct kallsyms_module *module = &k->modules[k->v[i].module];

		if (k->v[i].addr < module->start)
			module->start = k->v[i].addr & ~0xfffull;
		if (k->v[i].addr >= module->end)
			module->end = (k->v[i].addr & ~0xfffull) + 0x1000;
	}
}

void kallsyms_set_size(struct kallsyms *k, const char *module, uint64_t size)
{
	struct kallsyms_module *m = NULL;
	uint64_t end = UINT64_MAX;

	for (size_t i = 0; i < k->nr_modules && !m; i++)
		if (i != KALLSYMS_KERNEL && !strcmp(k->modules[i].name, module))
			m = &k->modules[i];
	if (!m || size > UINT64_MAX - m->start)
		return;
	for (size_t i = 0; i < k->nr_modules; i++)
		if (k->modules[i].start > m->start && k->modules[i].start < end)
			end = k->modules[i].start;
	if (m->start + size < end)
		end = m->start + size;
	if (end > m->end)
		m->end = end;
}

/* The modules' sizes: proc(5).  Without them a module's last function may be cut. */
static void read_sizes(struct kallsyms *k)
{
	FILE *f = fopen("/proc/modules", "re");
	char *text = NULL, name[64];
	unsigned long long size;
	size_t room = 0;

	while (f && getline(&text, &room, f) > 0)
		if (sscanf(text, "%63s %llu", name, &size) == 2)
			kallsyms_set_size(k, name, size);
	free(text);
	if (f)
		fclose(f);
}

static int read_lines(struct kallsyms *k, FILE *f)
{
	char *text = NULL;
	size_t room = 0;
	struct line l;
	int err = 0;

	while (!err && getline(&text, &room, f) > 0)
		if (parse(text, &l))
			err = add_line(k, &l);
	free(text);
	return err;
}

bool kallsyms_are_shown(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char text[NAME_ROOM + 64];
	struct line l = {0};
	bool shown = false;

	/* Variables for each CPU may begin at 0, but not so many of them. */
	for (int i = 0; f && !shown && i < 4096 && fgets(text, sizeof(text), f); i++)
		shown = parse(text, &l) && l.addr;
	if (f)
		fclose(f);
	return shown;
}

int kallsyms_read(struct kallsyms **out)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	FILE *f = fopen("/proc/kallsyms", "re");
	int err = f ? 0 : -errno;

	*out = NULL;
	if (!k)
		err = -ENOMEM;
	if (!err)
		err = read_lines(k, f);
	if (f)
		fclose(f);
	if (!err && (!k->nr || !k->text))
		err = -EACCES;
	if (err) {
		kallsyms_free(k);
		return err;
	}
	qsort(k->v, k->nr, sizeof(*k->v), by_address);
	bound_modules(k);
	read_sizes(k);
	*out = k;
	return 0;
}

const struct kallsym *kallsyms_find(const struct kallsyms *k, uint64_t addr)
{
	size_t low = 0, high = k->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->v[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low || addr >= k->modules[k->v[low - 1].module].end)
		return NULL;
	/* Of several names for one place, the first: so it is the same one each time. */
	for (low--; low && k->v[low - 1].addr == k->v[low].addr;)
		low--;
	return &k->v[low];
}

const char *kallsyms_name(const struct kallsyms *k, const struct kallsym *s)
{
	return k->names + s->name;
}

void kallsyms_free(struct kallsyms *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->nr_modules; i++)
		free((char *)(uintptr_t)k->modules[i].name);
	free(k->modules);
	free(k->names);
	free(k->v);
	free(k);
}
