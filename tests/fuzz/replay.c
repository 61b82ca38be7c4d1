/* replay.c - run a fuzz target over the files of its corpus: a test program without a fuzzer
 *
 * usage: test_fuzz_NAME [FILE | DIRECTORY]...   (without any: the corpus of the target)
 * Prints one TAP line for each file; a file that makes the target fail ends the program there.
 */
#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "tests/fuzz/fuzz.h"

static char **files;
static size_t nr_files;

static void add_file(char *path)
{
	files = realloc(files, (nr_files + 1) * sizeof(*files));
	FUZZ_CHECK(files && path);
	files[nr_files++] = path;
}

static char *join(const char *dir, const char *name)
{
	char *path;

	return asprintf(&path, "%s/%s", dir, name) < 0 ? NULL : path;
}

/* Add the regular files of @path, or @path itself.  False: not there. */
static bool collect(const char *path)
{
	struct dirent **entries;
	struct stat st;
	int nr;

	if (stat(path, &st))
		return false;
	if (!S_ISDIR(st.st_mode)) {
		add_file(strdup(path));
		return true;
	}
	nr = scandir(path, &entries, NULL, alphasort);
	for (int i = 0; i < nr; i++) {
		if (entries[i]->d_name[0] != '.')
			add_file(join(path, entries[i]->d_name));
		free(entries[i]);
	}
	free(nr < 0 ? NULL : entries);
	return nr >= 0;
}

static uint8_t *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rbe");
	struct stat st;
	uint8_t *bytes;

	if (!f)
		return NULL;
	FUZZ_CHECK(!fstat(fileno(f), &st));
	*len = (size_t)st.st_size;
	bytes = malloc(*len); /* of the exact size, for ASan */
	if (bytes && fread(bytes, 1, *len, f) != *len) {
		free(bytes);
		bytes = NULL;
	}
	fclose(f);
	return bytes;
}

static int run_file(size_t number)
{
	size_t len = 0;
	uint8_t *bytes = read_file(files[number], &len);
	const char *slash = strrchr(files[number], '/');

	/* A crash is told of by the line that is missing; this one says which file it was. */
	fprintf(stderr, "input: %s\n", files[number]);
	if (bytes)
		LLVMFuzzerTestOneInput(bytes, len);
	printf("%s %zu - %s\n", bytes ? "ok" : "not ok", number + 1,
	       slash ? slash + 1 : files[number]);
	fflush(stdout);
	free(bytes);
	return !bytes;
}

int main(int argc, char **argv)
{
	const char *const none[] = {FUZZ_CORPUS};
	const char *const *paths = argc > 1 ? (const char *const *)argv + 1 : none;
	int nr_paths = argc > 1 ? argc - 1 : 1, failed = 0;

	for (int i = 0; i < nr_paths; i++)
		if (!collect(paths[i]))
			fprintf(stderr, "cannot read '%s'\n", paths[i]);
	printf("1..%zu\n", nr_files);
	fflush(stdout);
	for (size_t i = 0; i < nr_files; i++) {
		failed |= run_file(i);
		free(files[i]);
	}
	free(files);
	return failed;
}
