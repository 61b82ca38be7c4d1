# bpf/build.mk - the programs that run in the kernel, and the C of them that the recorder includes:
# mleak.bpf.c on the allocators of processes, kmem.bpf.c on the kernel's,
# reach.bpf.c for the registers of threads

# The paths of this directory stay out of the object: it is the same wherever it is built.
$(O)/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) unwind/dwunw_event.h
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -g -O2 -Wall -Wextra -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -I. \
		-I/usr/include/$$($(CC) -print-multiarch) \
		-ffile-prefix-map=$(CURDIR)=. -fdebug-compilation-dir=. -c -o $(@:.o=.tmp.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.o=.tmp.o) && rm $(@:.o=.tmp.o)

$(O)/%.bpf.skel.h: $(O)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# Known to be needed before the first build has noted which files include it.
$(filter $(O)/record/%,$(OBJ)): | $(O)/mleak.bpf.skel.h $(O)/kmem.bpf.skel.h \
	$(O)/reach.bpf.skel.h
