# tests/bench/build.mk - measurements

BENCH       = $(addprefix $(O)/tests/bench/,preload_target cpu_time.so pair random_server slices format_speed unwind cfi \
	      symbols cost_target cost_probes cost.bpf.o cxx)

# A recording is measured, and not what it leaves for a report; report.py has both.
bench bench-unwind bench-preload bench-memleak: export MLEAK_CACHE = never

## bench: measure what recording costs a program, the size of traces, the speed of format/, of names and of unwind/
bench: all $(BENCH)
	-$(Q)python3 tests/bench/cost.py $(O)/tests/bench $(O)/mleak
	$(Q)python3 tests/bench/programs.py $(O)/tests/bench $(O)/mleak "$(O)/mleak --stack-size 128"
	-$(Q)python3 tests/bench/allocators.py $(O)/tests/bench $(O)/mleak
	$(Q)python3 tests/bench/overhead.py $(O)/mleak $(O)/tests/bench/pair
	$(Q)python3 tests/bench/trace_size.py $(O)/mleak $(O)/tests/bench/slices
	$(Q)$(O)/tests/bench/format_speed $(O)/format_speed.mlk
	$(Q)$(O)/tests/bench/symbols $$(readlink -f /lib/*-linux-gnu/libc.so.6) $(O)/tests/bench/cxx
	$(Q)$(SUBMAKE) bench-unwind

## bench-attach: measure how long attaching to processes and detaching from them takes
bench-attach: all
	$(Q)python3 tests/bench/attach.py $(O)/mleak

## bench-reach: measure what a process and the recorder lose while pointers are read, and redis-server
bench-reach: all
	$(Q)python3 tests/bench/reach.py $(O)/mleak
	$(Q)python3 tests/bench/reach_redis.py $(O)/mleak

## bench-unwind: measure how fast recorded stacks are unwound, against libdw
bench-unwind: all $(O)/tests/bench/unwind
	$(Q)python3 tests/bench/unwind.py $(O)/mleak $(O)/tests/bench/unwind

## bench-cfi: time to look up call frame information, against libdw's, in the largest files at hand
bench-cfi: $(O)/tests/bench/cfi
	$(Q)$(O)/tests/bench/cfi

$(addprefix $(O)/tests/,$(addprefix bench/,pair random_server told_pairs cost_target preload_target) load/load): \
		$(O)/%: %.c
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -o $@ $<

$(O)/tests/load/load: tests/say.h

$(O)/tests/bench/cpu_time.so: tests/bench/cpu_time.c
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -D_GNU_SOURCE -shared -fPIC -o $@ $<

## bench-preload: measure what recording by the preloaded library costs a program, against heaptrack and the other backends
bench-preload: all $(addprefix $(O)/tests/bench/,preload_target told_pairs cpu_time.so)
	$(Q)python3 tests/bench/backends.py $(O)/mleak $(O)/tests/bench/told_pairs
	$(Q)python3 tests/bench/preload.py $(O)/mleak $(O)/tests/bench

$(O)/tests/bench/inject_target: tests/live/inject_target.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-builtin -Wall -Wextra -I. -pthread -o $@ $<

## bench-stops: measure how long threads are stopped by --backend inject, asleep, at work, and on a busy machine
bench-stops: all $(addprefix $(O)/tests/bench/,inject_target bare_stop)
	$(Q)python3 tests/bench/stops.py $(O)/mleak $(addprefix $(O)/tests/bench/,inject_target bare_stop)

## bench-report: measure how long a report takes, against heaptrack_print and perf report (as root, some minutes)
bench-report: all
	$(Q)python3 tests/bench/report.py $(O)/mleak tests/bench/cxx.cc

## bench-reach-report: measure reports of many blocks and pointers, and of many processes
bench-reach-report: all $(O)/tests/tools/reach_trace
	$(Q)python3 tests/bench/reach_report.py $(O)/mleak $(O)/tests/tools/reach_trace

$(O)/tests/bench/symbols: $(O)/tests/bench/symbols.o $(filter $(O)/unwind/%,$(OBJ))
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# A C++ program with much that is inlined, and all of its debug information in it.
$(O)/tests/bench/cxx: tests/bench/cxx.cc
	@mkdir -p $(@D)
	$(Q)$(CXX) -O2 -g -o $@ $<

$(O)/tests/bench/cost_probes: $(O)/tests/bench/cost_probes.o $(O)/record/probe/uprobe_multi.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/tests/bench/cost.bpf.o: tests/bench/cost.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -g -O2 -Wall -Wextra -Wno-unused-parameter -Werror -target bpf -mcpu=v3 \
		-D__TARGET_ARCH_x86 -I/usr/include/$$($(CC) -print-multiarch) -c -o $@ $<

$(O)/tests/bench/slices $(O)/tests/bench/format_speed: $(O)/tests/bench/%: $(O)/tests/bench/%.o \
		$(filter $(O)/format/%,$(OBJ))
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/tests/bench/unwind: $(patsubst %.c,$(O)/%.o,$(wildcard tests/bench/unwind*.c)) \
		$(filter $(O)/format/% $(O)/unwind/%,$(OBJ)) \
		$(addprefix $(O)/report/base/,array.o hash_index.o strings.o) $(O)/report/decode/unwind_history.o \
		$(addprefix $(O)/report/trace/,trace_modules.o address_spaces.o named_spaces.o generated_names.o code_mapping.o interpreted.o code_lines.o)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

.PHONY: bench bench-attach bench-reach bench-reach-report bench-unwind bench-cfi bench-preload bench-stops bench-report bench-top bench-memleak

# It has what bcc's memleak needs: frame pointers.
$(O)/tests/bench/beside: tests/bench/beside.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -Wall -Wextra -pthread -o $@ $<

## bench-memleak: compare the stacks of bcc's memleak, which MEMLEAK=PATH names, with those of `mleak top` (as root)
bench-memleak: all $(O)/tests/bench/beside
	$(Q)python3 tests/bench/memleak.py $(O)/mleak $(O)/tests/bench/beside

## bench-top: measure what `mleak top` costs beside a program that allocates all the time (as root)
bench-top: all $(O)/tests/tools/live_load
	$(Q)python3 tests/bench/top.py $(O)/mleak $(O)/tests/tools/live_load

## bench-kernel: measure what recording the kernel's memory costs, beside what bcc's memleak does (as root)
bench-kernel: all $(O)/tests/bench/kernel_load $(O)/tests/bench/kmem_peer
	$(Q)python3 tests/bench/kernel.py $(O)/tests/bench $(O)/mleak $(ROUNDS)

$(O)/tests/bench/kernel_load: tests/bench/kernel_load.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -D_GNU_SOURCE -o $@ $<

$(O)/tests/bench/bare_stop: tests/bench/bare_stop.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -D_GNU_SOURCE -Wall -Wextra -o $@ $<

$(O)/tests/bench/kmem_peer: tests/bench/kmem_peer.c tests/bench/kmem_peer.bpf.c
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CLANG) -g -O2 -target bpf -mcpu=v3 -I. -I/usr/include/$$($(CC) -print-multiarch) \
		-c -o $@.bpf.o tests/bench/kmem_peer.bpf.c
	$(Q)$(BPFTOOL) gen skeleton $@.bpf.o name kmem_peer_bpf > $(@D)/kmem_peer.bpf.skel.h
	$(Q)$(CC) -O2 -I. -I$(@D) -o $@ $< -lbpf -lelf -lz
