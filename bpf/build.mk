# bpf/build.mk - the programs that run in the kernel, and the C of them that the recorder includes

# The paths of this directory stay out of the object: it is the same wherever it is built.
$(O)/mleak.bpf.o: bpf/mleak.bpf.c $(wildcard bpf/*.h) unwind/dwunw_event.h
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -g -O2 -Wall -Wextra -Werror -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -I. \
		-I/usr/include/$$($(CC) -print-multiarch) \
		-ffile-prefix-map=$(CURDIR)=. -fdebug-compilation-dir=. -c -o $(@:.o=.tmp.o) $<
	$(Q)$(BPFTOOL) gen object $@ $(@:.o=.tmp.o) && rm $(@:.o=.tmp.o)

$(O)/mleak.bpf.skel.h: $(O)/mleak.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name mleak_bpf > $@

# Known to be needed before the first build has noted which files include it.
$(filter $(O)/record/%,$(OBJ)): | $(O)/mleak.bpf.skel.h
