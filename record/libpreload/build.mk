# record/libpreload/build.mk - what runs in the programs that are recorded without probes

# What runs inside the programs that are recorded: never sanitized, always optimised, with no symbol
# of its own that others could see.
PRELOAD_SRC = $(filter %.c %.S,$(LIBPRELOAD))
PRELOAD_ALSO := bpf/event.h bpf/python.h bpf/plain_text.h $(sort $(wildcard bpf/*_walk.h)) unwind/dwunw_event.h
PRELOAD_DEPS = $(LIBPRELOAD) $(PRELOAD_ALSO)

# What both sides must have the same: a recorder refuses a program that has another libmleak-wrap.a.
PRELOAD_LAYOUT := -DPRELOAD_LAYOUT=0x$(shell cat $(filter %.h,$(LIBPRELOAD)) $(PRELOAD_ALSO) | sha256sum | cut -c1-16)
PRELOAD_FLAGS = -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(if $(WERROR),-Werror) -I. -fPIC \
	-fvisibility=hidden -fno-builtin-malloc -fcf-protection $(PRELOAD_LAYOUT)

$(O)/preload.layout: FORCE
	@mkdir -p $(@D); echo '$(PRELOAD_LAYOUT)' | cmp -s - $@ || echo '$(PRELOAD_LAYOUT)' > $@

$(O)/record/preload/backend.o $(O)/record/preload/lost/hindrance.o: ALL_CFLAGS += $(PRELOAD_LAYOUT)
$(O)/record/preload/backend.o $(O)/record/preload/lost/hindrance.o: $(O)/preload.layout

$(O)/libmleak-preload.so: $(PRELOAD_DEPS) $(O)/preload.layout record/libpreload/exports.map
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) -shared -Wl,-z,defs -Wl,-z,now -Wl,-Bsymbolic-functions -Wl,--hash-style=both \
		-Wl,--version-script=record/libpreload/exports.map -o $@ $(PRELOAD_SRC)

# The same for the linker to put into a program: one object, whose names are those that --wrap makes.
WRAPPED = malloc calloc realloc reallocarray free posix_memalign aligned_alloc memalign valloc pvalloc \
	mmap mmap64 mremap munmap mprotect madvise vfork execve execv execvpe execvp fexecve execl execlp execle \
	posix_spawn posix_spawnp execveat system popen prctl syscall malloc_usable_size _exit _Exit \
	pthread_getattr_np

$(O)/record/preload/launch_preloaded.o: record/libpreload/build.mk
$(O)/record/preload/launch_preloaded.o: ALL_CFLAGS += -DWRAPPED='"$(WRAPPED)"'

$(O)/libmleak-wrap.a: $(PRELOAD_DEPS) $(O)/preload.layout
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) -DPRELOAD_STATIC -r -nostdlib -o $(O)/libmleak-wrap.o $(PRELOAD_SRC)
	$(Q)$(OBJCOPY) --localize-hidden $(foreach name,$(WRAPPED),--redefine-sym $(name)=__wrap_$(name)) \
		$(O)/libmleak-wrap.o
	$(Q)rm -f $@ && ar rcs $@ $(O)/libmleak-wrap.o
