# record/injected/build.mk - the code that is put into processes that run: one flat image

# As the preloaded library: never sanitized, always optimised.  r15 holds what is known of the thread.
INJECTED_SRC   = $(wildcard record/injected/*.c record/injected/*.S) $(addprefix record/libpreload/event/, \
		   abandoned.c ask_recorder.c file_table.c python.c reserve.c sample.c stack_diff.c thread_ring.c write_event.c)
INJECTED_DEPS  = $(INJECTED_SRC) $(wildcard record/injected/*.h) record/injected/image.lds \
		 $(filter %.h,$(LIBPRELOAD)) $(PRELOAD_ALSO)
INJECTED_FLAGS = -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(if $(WERROR),-Werror) -I. -fPIE \
		 -fvisibility=hidden -ffreestanding -fno-stack-protector -fno-asynchronous-unwind-tables \
		 -fcf-protection=none -fno-tree-loop-distribute-patterns -ffunction-sections -fdata-sections \
		 -ffixed-r15 -U_FORTIFY_SOURCE -DPRELOAD_INJECTED $(PRELOAD_LAYOUT)

# clang has no variables in registers.
INJECTED_CC    = gcc

# The linker refuses what is not defined, and by image.lds all else that needs a loader.
$(O)/injected.elf: $(INJECTED_DEPS) $(O)/preload.layout record/injected/build.mk
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(INJECTED_CC) $(INJECTED_FLAGS) -nostdlib -pie -Wl,--no-dynamic-linker -Wl,-z,defs -Wl,--gc-sections \
		-Wl,--build-id=none -Wl,-T,record/injected/image.lds -o $@ $(INJECTED_SRC) -lgcc

$(O)/injected.bin: $(O)/injected.elf
	$(call say,BIN,$@)
	$(Q)$(OBJCOPY) -O binary $< $@

$(O)/record/inject/image.o: $(O)/injected.bin
$(O)/record/inject/image.o: ALL_CFLAGS += -DIMAGE='"$(O)/injected.bin"' $(PRELOAD_LAYOUT)
$(O)/record/inject/image.o: $(O)/preload.layout
