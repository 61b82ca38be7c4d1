/* privilege.h - what this process is allowed to do */
#ifndef RECORD_PRIVILEGE_H
#define RECORD_PRIVILEGE_H

#include <stdbool.h>

/* May it load BPF programs and attach them to probes, as far as can be told without doing so? */
bool privilege_for_bpf(void);

#endif
