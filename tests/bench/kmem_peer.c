/* kmem_peer.c - load and attach kmem_peer.bpf.c until stdin ends */
#include <stdio.h>

#include "kmem_peer.bpf.skel.h"

int main(void)
{
	struct kmem_peer_bpf *skel = kmem_peer_bpf__open_and_load();

	if (!skel || kmem_peer_bpf__attach(skel)) {
		fputs("kmem_peer: cannot attach (is tracefs mounted?)\n", stderr);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	kmem_peer_bpf__destroy(skel);
	return 0;
}
