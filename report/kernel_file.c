/* kernel_file.c - see kernel_file.h */
#include "report/kernel_file.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mleak.h"
#include "report/base/text.h"

/* What was found of the kernel in a trace. */
struct kernels {
	size_t nr; /* images of it: one without names, of the beginning, and one with */
	char build_id[2 * MLK_MAX_ID + 1]; /* of one of them, in hexadecimal; "" if not known */
	bool named;			   /* one of them has its lines from the file */
	int err;			   /* else why not */
};

/* By the image: in the trace, one without names has an id of another kind. */
static void note_build_id(struct kernels *k, const struct dwunw *dw, uint32_t module)
{
	size_t len, at = sizeof(Elf64_Nhdr) + sizeof("GNU");
	const uint8_t *note = dwunw_module_section(dw, module, ".note.gnu.build-id", &len);

	if (!note || len <= at || len - at > MLK_MAX_ID)
		return;
	for (size_t i = at; i < len; i++)
		snprintf(k->build_id + 2 * (i - at), 3, "%02x", note[i]);
}

/* Give the file of --vmlinux to each image of the kernel that it fits. */
static void offer_file(const struct report_run *job, struct kernels *k)
{
	struct dwunw *dw = job->leaks->dw;
	const char *path;

	for (uint32_t module = 0; (path = dwunw_module_path(dw, module)) != NULL; module++) {
		int err;

		if (strcmp(path, DWUNW_KERNEL_PATH) != 0)
			continue;
		k->nr++;
		note_build_id(k, dw, module);
		err = dwunw_debug_file_set(dw, module, job->opts->vmlinux);
		k->named |= !err;
		if (err)
			k->err = err;
	}
}

/* @file is safe to print. */
static int explain_file(const struct report_run *job, const struct kernels *k, const char *file)
{
	if (!k->nr)
		log_error("'%s' has no stacks of the kernel, so --vmlinux is of no use",
			  job->shown);
	else if (k->err == DWUNW_ERR_OTHER && *k->build_id)
		log_error("'%s' is not the kernel that was recorded in '%s', whose build-id is %s",
			  file, job->shown, k->build_id);
	else if (k->err == DWUNW_ERR_OTHER)
		log_error("'%s' does not tell the build-id of its kernel, so '%s' may be another "
			  "one",
			  job->shown, file);
	else if (k->err == DWUNW_ERR_ELF)
		log_error("'%s' is no vmlinux: --vmlinux takes the linked kernel, not a compressed "
			  "vmlinuz",
			  file);
	else if (k->err == DWUNW_ERR_NO_DEBUG)
		log_error("'%s' has no debug information: --vmlinux takes the file of a debug "
			  "package",
			  file);
	else
		log_error("cannot read '%s': %s", file, dwunw_strerror(k->err));
	return k->err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE;
}

int kernel_file_use(const struct report_run *job)
{
	const struct mlk_meta *meta = mlk_reader_meta(job->trace);
	struct kernels kernels = {0};
	char *file;
	int status;

	if (meta->of_kernel && dwunw_kernel_release_set(job->leaks->dw, meta->kernel))
		return report_run_explain_make(job, -ENOMEM);
	if (!job->opts->vmlinux)
		return EXIT_OK;
	offer_file(job, &kernels);
	if (kernels.named)
		return EXIT_OK;
	file = text_escape(job->opts->vmlinux);
	status = file ? explain_file(job, &kernels, file) : report_run_explain_make(job, -ENOMEM);
	free(file);
	return status;
}
