/* smaps.c - see smaps.h */
#include "record/reach/smaps.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "array.h"
#include "record/target/pages.h"

#define MOST_RUNS (8u << 20) /* 128 MiB of them */

/* Lines of a mapping. */
static const struct {
	const char *name;
	enum mlk_smaps_value value;
} lines[] = {
	{"Rss:", MLK_SMAPS_RSS},
	{"Pss:", MLK_SMAPS_PSS},
	{"Anonymous:", MLK_SMAPS_ANON},
	{"Swap:", MLK_SMAPS_SWAP},
	{"LazyFree:", MLK_SMAPS_LAZY},
	{"Private_Dirty:", MLK_SMAPS_DIRTY},
	{"Shared_Dirty:", MLK_SMAPS_DIRTY},
};

static void take_value(struct mlk_smaps *smaps, const char *line)
{
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		const size_t len = strlen(lines[i].name);

		if (strncmp(line, lines[i].name, len) != 0)
			continue;
		smaps->value[lines[i].value] += strtoull(line + len, NULL, 10) * 1024;
		smaps->known |= 1u << lines[i].value;
		return;
	}
}

static bool is_there(const struct mlk_smaps *m)
{
	return m->value[MLK_SMAPS_RSS] || m->value[MLK_SMAPS_SWAP];
}

/* A line that is none of a mapping's begins one, or is none of ours. */
static int take_line(struct smaps *smaps, char *line)
{
	size_t before = smaps->maps.nr;
	const struct mlk_mapping *m;
	int err;

	if (line[0] >= 'A' && line[0] <= 'Z') {
		if (smaps->nr)
			take_value(&smaps->all[smaps->nr - 1], line);
		return 0;
	}
	err = maps_parse(&smaps->maps, line);
	if (err || smaps->maps.nr == before)
		return err;
	/* the one before is kept if something of it is there */
	if (smaps->nr && !is_there(&smaps->all[smaps->nr - 1]))
		smaps->nr--;
	err = grow_array(&smaps->all, smaps->nr, &smaps->room, sizeof(*smaps->all));
	if (err)
		return err;
	m = &smaps->maps.v[before];
	smaps->all[smaps->nr++] = (struct mlk_smaps){.start = m->start,
						     .end = m->end,
						     .perms = m->perms,
						     .offset = m->offset,
						     .path = m->path};
	return 0;
}

int smaps_read(struct smaps *smaps, int smaps_fd)
{
	int fd = dup(smaps_fd), err = 0;
	FILE *in = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	if (!in) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (len = getline(&line, &room, in)) > 0) {
		line[len - 1] = '\0';
		err = take_line(smaps, line);
	}
	if (!err && ferror(in))
		err = -EIO;
	if (!err && smaps->nr && !is_there(&smaps->all[smaps->nr - 1]))
		smaps->nr--;
	free(line);
	fclose(in);
	return err ? err : smaps->maps.nr ? 0 : -ESRCH;
}

static int add_run(struct smaps *smaps, uint64_t from, uint64_t to)
{
	int err;

	if (smaps->nr_runs >= MOST_RUNS)
		return -E2BIG;
	err = grow_array(&smaps->runs, smaps->nr_runs, &smaps->room_runs, sizeof(*smaps->runs));
	if (!err)
		smaps->runs[smaps->nr_runs++] = (struct mlk_page_run){from, to};
	return err;
}

/* Pages are cut to the mapping: it may have become another one meanwhile. */
static int find_pages_of(struct smaps *smaps, struct mlk_smaps *m, struct pages *pages,
			 const _Atomic bool *stop)
{
	const size_t before = smaps->nr_runs;
	uint64_t from, to;
	int more = 0, err = 0;

	pages_begin(pages, m->start);
	while (!err && (more = pages_next(pages, m->end, &from, &to)) > 0)
		err = *stop ? -ECANCELED : add_run(smaps, from, to);
	m->nr_pages = smaps->nr_runs - before;
	return err ? err : more;
}

int smaps_find_pages(struct smaps *smaps, int pagemap, const _Atomic bool *stop)
{
	struct pages *pages = calloc(1, sizeof(*pages));
	size_t first = 0;
	int err = pages ? 0 : -ENOMEM;

	if (pages) {
		pages->fd = pagemap;
		pages->only_present = true;
	}
	for (size_t i = 0; i < smaps->nr && !err; i++) {
		struct mlk_smaps *m = &smaps->all[i];

		if (m->perms & MLK_PERM_W && !(m->perms & MLK_PERM_SHARED) &&
		    m->value[MLK_SMAPS_RSS])
			err = find_pages_of(smaps, m, pages, stop);
	}
	/* the array has its place now */
	for (size_t i = 0; i < smaps->nr; i++) {
		smaps->all[i].pages = smaps->runs + first;
		first += smaps->all[i].nr_pages;
	}
	free(pages);
	return err;
}

void smaps_release(struct smaps *smaps)
{
	maps_release(&smaps->maps);
	free(smaps->all);
	free(smaps->runs);
	*smaps = (struct smaps){0};
}
