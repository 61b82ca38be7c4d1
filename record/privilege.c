/* privilege.c - capabilities, and what a container may have taken away all the same */
#include "record/privilege.h"

#include <bpf/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#define BIT_SYS_ADMIN 21
#define BIT_PERFMON   38
#define BIT_BPF	      39

/* The effective capabilities, a bit each; 0 if they cannot be read. */
static uint64_t capabilities(void)
{
	FILE *status = fopen("/proc/self/status", "re");
	unsigned long long set = 0;
	char line[256];

	if (!status)
		return 0;
	while (fgets(line, sizeof(line), status) && sscanf(line, "CapEff: %llx", &set) != 1)
		;
	fclose(status);
	return set;
}

bool privilege_for_bpf(void)
{
	uint64_t has = capabilities(), both = 1ull << BIT_PERFMON | 1ull << BIT_BPF;
	int fd;

	if (!(has & 1ull << BIT_SYS_ADMIN) && (has & both) != both)
		return false;
	/* The programs need types of the running kernel; and a container's seccomp may refuse
	 * bpf(2) to root. */
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return false;
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "mleak_try", 0, 0, 4096, NULL);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}
