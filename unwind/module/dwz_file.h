/* dwz_file.h - the file into which dwz moved what several debug files have in common */
#ifndef DWUNW_DWZ_FILE_H
#define DWUNW_DWZ_FILE_H

#include "unwind/module/debugfile.h"

/* Find the one that file->main names in .gnu_debugaltlink, if it does, and link both; what is not
 * found is noted in file->notes.  Returns 0 or -ENOMEM. */
int dwunw_dwz_file_find(struct dwunw_debugfile *file, const struct dwunw_debug_dirs *dirs);

#endif
