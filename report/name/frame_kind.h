/* frame_kind.h - functions that are no machine code of a file, among those that are */
#ifndef REPORT_FRAME_KIND_H
#define REPORT_FRAME_KIND_H

/*
 * What is put behind the name @function, of the module with the path @module that
 * symbols_module_path() told, in formats that have no other place for that: " [python]", " [php]"
 * or " [ruby]" where it is interpreted; "_[j]" where the process generated its code ("just in
 * time"), as stackcollapse-perf.pl has it; else "".  Static text.
 */
const char *frame_kind_mark(const char *module, const char *function);

#endif
