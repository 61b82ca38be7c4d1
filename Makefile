# mleak - one Makefile, objects in $(O).  'make help' lists the targets.
#
# V=1 shows the commands; DEBUG=1 builds without optimisation; SAN=address,undefined adds sanitizers;
# WERROR=1 makes warnings errors; O=DIR builds elsewhere.

MAKEFLAGS += --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

O       ?= build
CC      := gcc
CXX     := g++
CLANG   ?= clang
# An ordinary user's PATH may lack the folder where Debian has it.
BPFTOOL ?= $(shell PATH="$$PATH:/usr/sbin:/sbin" command -v bpftool || echo bpftool)
OBJCOPY ?= objcopy
STRIP   ?= strip
SCDOC   ?= scdoc
CFLAGS  ?= -g
Q       := $(if $(V),,@)
say      = @printf '  %-6s %s\n' '$(1)' '$(2)'

ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(if $(WERROR),-Werror) \
	$(if $(DEBUG),-O1 -fno-omit-frame-pointer,-O2) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) \
	-I. -I$(O) $(CFLAGS) -MMD -MP
ALL_LDFLAGS = $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
# The program is optimised as a whole: what is done for each event goes through many small functions of different files.
LTO         = $(if $(DEBUG)$(SAN),,$(if $(filter gcc,$(CC)),-flto=auto))
LDLIBS      = -lbpf -lZydis -ldw -lelf -lzstd -llzma -lz -lprotobuf-c -liberty -lm -lpthread

# All files below the folders $(1) with the names $(2); the library that runs in other programs has rules of its own.
files_of    = $(sort $(shell find $(1) -path record/libpreload -prune -o -type f -name '$(2)' -print))
MODULES     = format unwind cmdline record report
SRC         = mleak.c $(call files_of,$(MODULES),*.c)
OBJ         = $(SRC:%.c=$(O)/%.o) $(O)/report/machine/profile.pb-c.o
LIBPRELOAD  = $(sort $(shell find record/libpreload -type f))
HEADERS     = mleak.h bpf/event.h $(call files_of,$(MODULES),*.h) $(filter %.h,$(LIBPRELOAD))
FUZZ        = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
UNIT        = $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c)) \
	      $(FUZZ:%=$(O)/tests/unit/test_fuzz_%)
FORMATTED   = $(SRC) $(HEADERS) $(filter %.c,$(LIBPRELOAD)) $(wildcard bpf/*.[ch] tests/unit/*.[ch] tests/fuzz/*.[ch] tests/*.h tests/oracle/*.[ch] \
	      tests/exact/*.[ch] tests/bench/*.[ch] tests/tools/*.c tests/load/*.c tests/guest/*.c samples/*.[ch] samples/*.cc)

BENCH       = $(addprefix $(O)/tests/bench/,preload_target cpu_time.so pair slices format_speed unwind cfi symbols cost_target cost_probes cost.bpf.o) $(O)/tests/bench/cxx
ORACLE      = $(patsubst tests/oracle/%.c,$(O)/tests/oracle/%,$(wildcard tests/oracle/cfi*.c))


SAMPLES     = $(basename $(notdir $(filter-out samples/plugin.c samples/twin_%.c,$(wildcard samples/*.c samples/*.cc)))) \
	      plugin.so twin_a.so twin_b.so
SAMPLE_BINS = $(SAMPLES:%=$(O)/samples/%)

# The library libdwunw, and where things are installed; DESTDIR goes before all of it.
PREFIX     ?= /usr/local
BINDIR     ?= $(PREFIX)/bin
LIBDIR     ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
DOCDIR     ?= $(PREFIX)/share/doc/mleak
MANDIR     ?= $(PREFIX)/share/man
BASHDIR    ?= $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
DWUNW_VERSION = 0.1
DWUNW_LIBS  = $(filter-out -lbpf -lZydis -lprotobuf-c,$(LDLIBS))
DWUNW_OBJ   = $(patsubst %.c,$(O)/pic/%.o,$(call files_of,unwind,*.c))
DWUNW_FILES = $(O)/libdwunw.a $(O)/libdwunw.so.0 $(O)/dwunw.pc
INSTALLED_HEADERS = $(wildcard unwind/dwunw*.h)
MAN         = $(patsubst doc/man/%.scd,$(O)/man/%,$(wildcard doc/man/*.scd))
INSTALLED_DOCS = LICENSE README.md $(wildcard doc/*.md)
FORMATTED  += $(wildcard samples/bpf_memleak/*.[ch])

# What a fresh Debian 12 lacks: to build, then to test.
DEB_BUILD = gcc libc6-dev linux-libc-dev clang bpftool libbpf-dev libelf-dev libdw-dev libzstd-dev \
	    libzydis-dev zlib1g-dev liblzma-dev libiberty-dev libprotobuf-c-dev protobuf-c-compiler scdoc
# Any rustc will do, rustup's too.
RUSTC     = $(if $(shell command -v rustc),,rustc)
DEB_TEST  = g++ git perl binutils python3 libcmocka-dev clang-format util-linux procps sqlite3 zstd libc6-dbg \
	    xz-utils curl ca-certificates ed bc dwz less elfutils libdebuginfod1 llvm gdb pkg-config groff-base zsh \
	    libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 musl-tools libjemalloc-dev redis-tools strace lintian \
	    heaptrack chromium bubblewrap golang-go golang-github-google-pprof-dev \
	    qemu-system-x86 cpio libcap2-bin $(RUSTC)
DEB_DEMO  = g++ binutils libc6-dbg
DEB_PACK  = dpkg-dev binutils xz-utils
DEB_CHECK = debootstrap lintian util-linux
DEB_FUZZ  = clang libclang-rt-dev
DEB       = $(DEB_BUILD) $(DEB_PACK) $(DEB_TEST)


## all: build mleak (the program is build/mleak)
all: $(O)/mleak $(O)/libmleak-preload.so $(O)/libmleak-wrap.a

## demo: install what is missing, build, record a leaking sample, show its leak tree and folded stacks
demo:
	$(Q)$(MAKE) --no-print-directory deps DEB='$(DEB_BUILD) $(DEB_DEMO)'
	$(Q)$(MAKE) --no-print-directory all samples
	$(O)/mleak record -o $(O)/demo.mlk -- $(O)/samples/single
	$(O)/mleak report $(O)/demo.mlk
	$(O)/mleak report --format=folded $(O)/demo.mlk > $(O)/demo.folded
	@echo; echo "The folded stacks are in $(O)/demo.folded; flamegraph.pl draws them."

## test: install what is missing, build with ASan and UBSan, run all tests; its last line counts them
test: deps speedscope
	$(Q)$(MAKE) --no-print-directory all man libdwunw
	$(Q)$(MAKE) --no-print-directory O=$(O)/san SAN=address,undefined DEBUG=1 WERROR=1 build-tests
	$(Q)$(MAKE) --no-print-directory check-layers check-headers format-check
	$(Q)MLEAK_FAST=$(abspath $(O))/mleak python3 tests/run.py --build $(O)/san

## check-unit: only the unit tests
check-unit:
	$(Q)$(MAKE) --no-print-directory O=$(O)/san SAN=address,undefined DEBUG=1 WERROR=1 build-tests
	$(Q)python3 tests/run.py --build $(O)/san unit

## fuzz: run each fuzz target for TIME=60 seconds, from a copy of its corpus; finds in build/fuzz/found
fuzz: export TIME := $(or $(TIME),60)
fuzz:
	$(Q)$(MAKE) --no-print-directory deps DEB='$(DEB_FUZZ) $(DEB_BUILD)'
	$(Q)rm -rf $(O)/fuzz/corpus $(O)/fuzz/found
	$(Q)$(MAKE) -k --no-print-directory O=$(O)/fuzz CC=$(CLANG) SAN=address,undefined DEBUG=1 \
		CFLAGS='-g -fsanitize=fuzzer-no-link' $(FUZZ:%=run-fuzz-%)
	$(Q)$(MAKE) --no-print-directory all
	$(call say,FUZZ,traces)
	$(Q)python3 tests/fuzz/mutate_traces.py --seconds $(TIME) --keep $(O)/fuzz/found $(O)/mleak \
		tests/golden/*.mlk

$(O)/tests/fuzz/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/libunit.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

run-fuzz-%: $(O)/tests/fuzz/fuzz_%
	$(call say,FUZZ,$*)
	$(Q)mkdir -p $(O)/corpus $(O)/found && cp -r tests/fuzz/corpus/$* $(O)/corpus/
	$(Q)$< -max_total_time=$(TIME) -timeout=20 -max_len=8192 -artifact_prefix=$(O)/found/$*- \
		$(O)/corpus/$* 2> $(O)/found/$*.log || { tail -n 40 $(O)/found/$*.log; exit 1; }
	$(Q)tail -n 1 $(O)/found/$*.log

## bench: measure what recording costs a program, the size of traces, the speed of format/, of names and of unwind/
bench: all $(BENCH)
	-$(Q)python3 tests/bench/cost.py $(O)/tests/bench $(O)/mleak
	$(Q)python3 tests/bench/programs.py $(O)/tests/bench $(O)/mleak "$(O)/mleak --stack-size 128"
	$(Q)python3 tests/bench/overhead.py $(O)/mleak $(O)/tests/bench/pair
	$(Q)python3 tests/bench/trace_size.py $(O)/mleak $(O)/tests/bench/slices
	$(Q)$(O)/tests/bench/format_speed $(O)/format_speed.mlk
	$(Q)$(O)/tests/bench/symbols $$(readlink -f /lib/*-linux-gnu/libc.so.6) $(O)/tests/bench/cxx
	$(Q)$(MAKE) --no-print-directory bench-unwind

## bench-attach: measure how long attaching to processes and detaching from them takes
bench-attach: all
	$(Q)python3 tests/bench/attach.py $(O)/mleak

## bench-unwind: measure how fast recorded stacks are unwound, against libdw
bench-unwind: all $(O)/tests/bench/unwind
	$(Q)python3 tests/bench/unwind.py $(O)/mleak $(O)/tests/bench/unwind

# What reads call frame information, with nothing that it does not need.
CFI_OBJ     = $(patsubst %.c,$(O)/%.o,$(wildcard unwind/cfi/*.c) unwind/elf/elf_util.c unwind/elf/addr_index.c)

$(O)/tests/bench/cfi $(ORACLE): $(O)/%: $(O)/%.o $(CFI_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

## bench-cfi: time to look up call frame information, against libdw's, in the largest files at hand
bench-cfi: $(O)/tests/bench/cfi
	$(Q)$(O)/tests/bench/cfi

## acceptance-cfi: compare all call frame information of this machine with libdw's and readelf's
acceptance-cfi: deps
	$(Q)$(MAKE) --no-print-directory $(ORACLE)
	$(Q)python3 tests/oracle/cfi_all.py $(O)/tests/oracle /usr/bin /usr/lib

$(O)/tests/bench/pair $(O)/tests/bench/cost_target $(O)/tests/bench/preload_target $(O)/tests/load/load: $(O)/%: %.c
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -o $@ $<

$(O)/tests/bench/cpu_time.so: tests/bench/cpu_time.c
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -D_GNU_SOURCE -shared -fPIC -o $@ $<

## bench-preload: measure what recording by the preloaded library costs a program, against heaptrack
bench-preload: all $(O)/tests/bench/preload_target $(O)/tests/bench/cpu_time.so
	$(Q)python3 tests/bench/preload.py $(O)/mleak $(O)/tests/bench

## bench-report: measure how long a report takes, against heaptrack_print and perf report (as root, some minutes)
bench-report: all
	$(Q)python3 tests/bench/report.py $(O)/mleak tests/bench/cxx.cc

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
		$(O)/report/base/array.o $(O)/report/base/hash_index.o $(O)/report/decode/unwind_history.o $(O)/report/trace/trace_modules.o $(O)/report/trace/address_spaces.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# The exactness oracle: a preload library and a stress program as users have them, never sanitized,
# and a tool of this build which compares.
EXACT_STRESS = $(addprefix $(O)/tests/exact/stress-,O2 O0 O3-lto clang)
EXACT        = $(O)/tests/exact/sampler.so $(O)/tests/exact/compare $(EXACT_STRESS)
STRESS_SRC   = $(wildcard tests/exact/stress.c tests/exact/stress_[fstl]*.c tests/exact/stress_asm.S)
STRESS_FLAGS = -std=gnu11 -D_GNU_SOURCE -g -Wall -Wextra -fomit-frame-pointer -pthread -fno-builtin -fPIE

$(O)/tests/exact/sampler.so: tests/exact/sampler.c tests/exact/exact.h unwind/dwunw_event.h
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -I. $(SAMPLE_FLAGS) -shared -fPIC -o $@ $< -lgcc_s

$(O)/tests/exact/compare: $(O)/tests/exact/compare.o $(O)/tests/exact/modules.o $(O)/libunit.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/tests/exact/stress_%.so: tests/exact/stress_plugin.c tests/exact/stress.h
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 $(STRESS_FLAGS) -fPIC -DFRAME_BYTES=$(if $(filter a,$*),40,328) -shared \
		-Wl,-z,lazy -o $@ $<

$(O)/tests/exact/stress-O2: STRESS = gcc g++ -O2
$(O)/tests/exact/stress-O0: STRESS = gcc g++ -O0
$(O)/tests/exact/stress-O3-lto: STRESS = gcc g++ -O3 -flto=auto
$(O)/tests/exact/stress-clang: STRESS = clang clang++ -O2

# Built with the compilers named first; each object has its own folder.
$(EXACT_STRESS): $(STRESS_SRC) tests/exact/stress_cxx.cc tests/exact/stress.h \
		$(O)/tests/exact/stress_a.so $(O)/tests/exact/stress_b.so
	$(call say,SAMPLE,$@)
	@mkdir -p $@.o
	$(Q)for f in $(STRESS_SRC); do \
		$(word 1,$(STRESS)) $(wordlist 3,9,$(STRESS)) $(STRESS_FLAGS) -c -o $@.o/$$(basename $$f).o $$f || exit; \
	done
	$(Q)$(word 2,$(STRESS)) $(wordlist 3,9,$(STRESS)) $(filter-out -std=gnu11,$(STRESS_FLAGS)) -pie \
		-Wl,-z,lazy -o $@ $@.o/*.o tests/exact/stress_cxx.cc -lm -ldl

## acceptance: run the tests that take minutes: frames of many programs, call frame information of all, loads
acceptance: deps
	$(Q)$(MAKE) --no-print-directory all $(EXACT)
	$(Q)python3 tests/exact/exact.py --build $(O) --long
	$(Q)$(MAKE) --no-print-directory acceptance-cfi
	$(Q)$(MAKE) --no-print-directory acceptance-load

## acceptance-load: loads of 30 seconds each, the instructions of an allocation, the most that gets through
acceptance-load: deps
	$(Q)$(MAKE) --no-print-directory all $(LOAD)
	$(Q)MLEAK_LOAD_SECONDS=30 python3 tests/run.py --build $(O) load
	$(Q)python3 tests/load/loadtest.py $(O) 5

LOAD        = $(O)/tests/load/load $(O)/tests/bench/cost_target $(O)/tests/bench/cost_probes $(O)/tests/bench/cost.bpf.o

# The viewer that pages of --format=html have in them, if it can be had; kept for all $(O).
SPEEDSCOPE     = 1.25.0
SPEEDSCOPE_SUM = 7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02
SPEEDSCOPE_JS ?= build/npm/speedscope-$(SPEEDSCOPE).js

## speedscope: fetch the viewer speedscope from npm; then build, and pages of --format=html have it in them
speedscope:
	$(Q)[ -f $(SPEEDSCOPE_JS) ] || report/machine/get_speedscope.sh $(SPEEDSCOPE) $(SPEEDSCOPE_SUM) $(SPEEDSCOPE_JS)

.PHONY: speedscope

## samples: build the leaking samples, stripped, with separate debug files
samples: $(SAMPLE_BINS)

TOOLS       = $(patsubst %.c,$(O)/%,$(wildcard tests/tools/*.c))

# What runs in the guests of check-kernels.
GUEST       = $(O)/tests/guest/verify

build-tests: all man samples $(UNIT) $(ORACLE) $(EXACT) $(TOOLS) $(LOAD) $(GUEST)

# Not sanitized, for the guests that it runs in are slow.
$(O)/tests/guest/verify: tests/guest/verify.c $(O)/mleak.bpf.skel.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(if $(WERROR),-Werror) -I. -I$(O) -o $@ $< -lbpf

## check-kernels: boot Debian's kernels under QEMU, and run tests in them (fetches 150 MB, then takes 10 minutes)
check-kernels: deps
	$(Q)$(MAKE) --no-print-directory all samples $(GUEST)
	$(Q)python3 tests/kernels/check.py --build $(O)

.PHONY: check-kernels

## deps: install the missing packages (Debian, as root); elsewhere print the list
deps:
	$(Q)missing=; for p in $(DEB); do \
		dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; \
	done; \
	[ -z "$$missing" ] && exit 0; \
	echo "missing packages:$$missing"; \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then \
		echo "install them (Debian's names) and run make again; as root on Debian, make does it"; exit 1; \
	fi; \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive \
		apt-get install -q -y --no-install-recommends $$missing

# What print_html.c takes in by the assembler is known to no other file.
$(filter-out $(O)/report/machine/print_html.o,$(OBJ)): private ALL_CFLAGS += $(LTO)

$(O)/mleak: $(OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LTO) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/record/probe/probes.o $(O)/record/probe/probes_link.o $(O)/record/filter/filters.o $(O)/record/filter/filters_sweep.o $(O)/record/probe/deferred_frees.o: $(O)/mleak.bpf.skel.h

# The messages of pprof's format; and the page that print_html.c takes in as it is.
$(O)/report/machine/profile.pb-c.c: report/machine/profile.proto
	$(call say,PROTO,$<)
	@mkdir -p $(@D)
	$(Q)protoc-c --c_out=$(O) $<

$(O)/report/machine/profile.pb-c.o: $(O)/report/machine/profile.pb-c.c
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/report/machine/print_pprof.o: $(O)/report/machine/profile.pb-c.c
$(O)/report/machine/print_html.o: report/machine/flame.html $(wildcard $(SPEEDSCOPE_JS))
$(O)/report/machine/print_html.o: ALL_CFLAGS += $(if $(wildcard $(SPEEDSCOPE_JS)),-DSPEEDSCOPE='"$(SPEEDSCOPE_JS)"')

# What runs inside the programs that are recorded: never sanitized, always optimised, with no symbol
# of its own that others could see.
PRELOAD_SRC = $(filter %.c %.S,$(LIBPRELOAD))
PRELOAD_DEPS = $(LIBPRELOAD) bpf/event.h unwind/dwunw_event.h

# What both sides must have the same: a recorder refuses a program that has another libmleak-wrap.a.
PRELOAD_LAYOUT := -DPRELOAD_LAYOUT=0x$(shell cat $(filter %.h,$(LIBPRELOAD)) bpf/event.h unwind/dwunw_event.h | sha256sum | cut -c1-16)
PRELOAD_FLAGS = -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra $(if $(WERROR),-Werror) -I. -fPIC \
	-fvisibility=hidden -fno-builtin-malloc -fcf-protection $(PRELOAD_LAYOUT)

$(O)/preload.layout: FORCE
	@mkdir -p $(@D); echo '$(PRELOAD_LAYOUT)' | cmp -s - $@ || echo '$(PRELOAD_LAYOUT)' > $@

$(O)/record/preload/backend.o $(O)/record/preload/launch_preloaded.o: ALL_CFLAGS += $(PRELOAD_LAYOUT)
$(O)/record/preload/backend.o $(O)/record/preload/launch_preloaded.o: $(O)/preload.layout

$(O)/libmleak-preload.so: $(PRELOAD_DEPS) $(O)/preload.layout record/libpreload/exports.map
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) -shared -Wl,-z,defs -Wl,-z,now -Wl,--hash-style=both \
		-Wl,--version-script=record/libpreload/exports.map -o $@ $(PRELOAD_SRC)

# The same for the linker to put into a program: one object, whose names are those that --wrap makes.
WRAPPED = malloc calloc realloc reallocarray free posix_memalign aligned_alloc memalign valloc pvalloc \
	mmap mmap64 mremap munmap mprotect vfork execve execv execvpe execvp fexecve execl execlp execle \
	posix_spawn posix_spawnp execveat system popen prctl syscall malloc_usable_size _exit _Exit \
	pthread_getattr_np

$(O)/record/preload/wrap_flags.o: Makefile
$(O)/record/preload/wrap_flags.o: ALL_CFLAGS += -DWRAPPED='"$(WRAPPED)"'

$(O)/libmleak-wrap.a: $(PRELOAD_DEPS) $(O)/preload.layout
	$(call say,AR,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(PRELOAD_FLAGS) -DPRELOAD_STATIC -r -nostdlib -o $(O)/libmleak-wrap.o $(PRELOAD_SRC)
	$(Q)$(OBJCOPY) --localize-hidden $(foreach name,$(WRAPPED),--redefine-sym $(name)=__wrap_$(name)) \
		$(O)/libmleak-wrap.o
	$(Q)rm -f $@ && ar rcs $@ $(O)/libmleak-wrap.o

# The hot loop keeps its registers apart: packed into vectors they wait for each other.
$(O)/unwind/walk/fast.o: ALL_CFLAGS += -fno-tree-slp-vectorize

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

# Unit tests link what they need out of an archive of everything; its main() goes by another name.
$(O)/tests/unit/mleak.o: mleak.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Dmain=mleak_main -c -o $@ $<

$(O)/libunit.a: $(filter-out $(O)/mleak.o,$(OBJ)) $(O)/tests/unit/mleak.o $(O)/tests/fuzz/memory.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/tests/tools/%: $(O)/tests/tools/%.o $(filter $(O)/unwind/%,$(OBJ))
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/tests/unit/test_%: $(O)/tests/unit/test_%.o $(O)/libunit.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ -lcmocka $(LDLIBS)

# A fuzz target without a fuzzer runs its corpus.
$(O)/tests/fuzz/replay_%.o: tests/fuzz/replay.c
	$(call say,CC,$< for $*)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -DFUZZ_CORPUS='"$(CURDIR)/tests/fuzz/corpus/$*"' -c -o $@ $<

$(O)/tests/unit/test_fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay_%.o $(O)/libunit.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# Samples are what users have: optimised, without frame pointers, stripped; never sanitized.
SAMPLE_FLAGS = -O2 -fomit-frame-pointer -g -Wall -Wextra -pthread

define split_debug
	$(Q)cd $(@D) && $(OBJCOPY) --only-keep-debug $(@F) $(@F).debug && $(STRIP) $(@F) && \
		$(OBJCOPY) --add-gnu-debuglink=$(@F).debug $(@F)
endef

$(O)/samples/%.so: samples/%.c $(wildcard samples/*.h)
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -shared -fPIC -o $@ $<
	$(split_debug)

$(O)/samples/%: samples/%.c $(wildcard samples/*.h)
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -o $@ $< -ldl
	$(split_debug)

$(O)/samples/%: samples/%.cc $(wildcard samples/*.h)
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(SAMPLE_FLAGS) -o $@ $<
	$(split_debug)

## check-layers: fail on an include that the list of rooms does not allow, and on folders or files that grew too large
check-layers:
	$(Q)python3 tests/lint/rooms.py

## check-headers: fail on a header that needs another one before it, or on a public one that C++ refuses
check-headers:
	$(Q)for h in $(INSTALLED_HEADERS); do \
		$(CXX) -Wall -Wextra -Werror -fsyntax-only -x c++ $$h || exit 1; \
	done
	$(Q)for h in $(HEADERS); do \
		$(CC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -fsyntax-only -x c $$h || exit 1; \
	done

## format: lay out all C files by .clang-format
format:
	$(Q)clang-format -i $(FORMATTED)

## format-check: fail on a file that 'make format' would change
format-check:
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

## lint: fail on what check-layers, check-headers, format-check or the lengths of texts object to
lint: check-layers check-headers format-check
	$(Q)python3 tests/lint/prose.py

.PHONY: lint

## libdwunw: build the unwinder's library, static and shared, and its pkg-config file
libdwunw: $(DWUNW_FILES)

$(O)/pic/%.o: %.c
	$(call say,CC,$< (PIC))
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -fPIC -c -o $@ $<

$(O)/libdwunw.a: $(DWUNW_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

# Exported is what dwunw.h declares, and nothing else.
$(O)/dwunw.map: unwind/dwunw.h $(INSTALLED_HEADERS)
	@mkdir -p $(@D)
	$(Q)( echo 'DWUNW_0 { global:'; $(CC) -E -P $< | tr '\n' ' ' | sed 's/typedef [^;]*;//g' | \
			grep -oE '\bdwunw_[a-z0-9_]+\(' | tr '(' ';' | sort -u; \
		echo 'local: *; };' ) > $@

$(O)/libdwunw.so.0: $(DWUNW_OBJ) $(O)/dwunw.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--version-script=$(O)/dwunw.map \
		$(if $(SAN),,-Wl,-z,defs) -Wl,--as-needed -o $@ $(DWUNW_OBJ) $(DWUNW_LIBS)

# Made anew each time: it holds the paths that were asked for.
$(O)/dwunw.pc: unwind/dwunw.pc.in FORCE
	@mkdir -p $(@D)
	$(Q)sed -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' \
		-e 's|@VERSION@|$(DWUNW_VERSION)|' -e 's|@LIBS@|$(DWUNW_LIBS)|' $< > $@

## man: build the manual pages, with the options that the program itself lists
man: $(MAN)

# A page has the date of its source, or that which a package's build asks for.
$(O)/man/%.1: doc/man/%.1.scd doc/man/options.awk $(O)/mleak
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)case $* in \
		mleak-*) $(O)/mleak --list-options $(*:mleak-%=%) > $(@:.1=.options) && \
			awk -F'\t' -f doc/man/options.awk $(@:.1=.options) $< > $(@:.1=.scd) ;; \
		*) cp $< $(@:.1=.scd) ;; \
	esac
	$(Q)SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y $<)} $(SCDOC) < $(@:.1=.scd) > $@

## install: install mleak, libdwunw, headers and documents below PREFIX=/usr/local (DESTDIR= before it)
install: all man libdwunw
	$(Q)install -d $(addprefix $(DESTDIR),$(BINDIR) $(LIBDIR)/pkgconfig $(INCLUDEDIR) $(DOCDIR) \
		$(MANDIR)/man1 $(BASHDIR) $(ZSHDIR))
	$(Q)install -m 755 $(O)/mleak $(DESTDIR)$(BINDIR)
	$(Q)install -m 644 $(O)/libdwunw.a $(O)/libdwunw.so.0 $(DESTDIR)$(LIBDIR)
	$(Q)install -D -m 644 -t $(DESTDIR)$(LIBDIR)/mleak $(O)/libmleak-preload.so $(O)/libmleak-wrap.a
	$(Q)ln -sf libdwunw.so.0 $(DESTDIR)$(LIBDIR)/libdwunw.so
	$(Q)install -m 644 $(O)/dwunw.pc $(DESTDIR)$(LIBDIR)/pkgconfig
	$(Q)install -m 644 $(INSTALLED_HEADERS) $(DESTDIR)$(INCLUDEDIR)
	$(Q)install -m 644 $(INSTALLED_DOCS) $(DESTDIR)$(DOCDIR)
	$(Q)install -m 644 $(MAN) $(DESTDIR)$(MANDIR)/man1
	$(Q)install -m 644 doc/completion/mleak.bash $(DESTDIR)$(BASHDIR)/mleak
	$(Q)install -m 644 doc/completion/_mleak $(DESTDIR)$(ZSHDIR)

## uninstall: remove what install put there (the same PREFIX= and DESTDIR=)
uninstall:
	$(Q)rm -f $(DESTDIR)$(BINDIR)/mleak $(addprefix $(DESTDIR)$(LIBDIR)/,libdwunw.a libdwunw.so \
		libdwunw.so.0 mleak/libmleak-preload.so mleak/libmleak-wrap.a pkgconfig/dwunw.pc) \
		$(addprefix $(DESTDIR)$(INCLUDEDIR)/,$(notdir $(INSTALLED_HEADERS))) \
		$(addprefix $(DESTDIR)$(DOCDIR)/,$(notdir $(INSTALLED_DOCS))) \
		$(addprefix $(DESTDIR)$(MANDIR)/man1/,$(notdir $(MAN))) \
		$(DESTDIR)$(BASHDIR)/mleak $(DESTDIR)$(ZSHDIR)/_mleak
	$(Q)for dir in $(DESTDIR)$(DOCDIR) $(DESTDIR)$(LIBDIR)/mleak; do \
		if [ -d $$dir ]; then rmdir --ignore-fail-on-non-empty $$dir; fi; done

# Debian packages
VERSION     = $(shell sed -n 's/^\#define MLEAK_VERSION "\(.*\)"/\1/p' mleak.h)
DEB_OUT    ?= $(O)/deb

## deb: build Debian packages (mleak, libdwunw0, libdwunw-dev) into build/deb, from what install installs
deb:
	$(Q)$(MAKE) --no-print-directory deps DEB='$(DEB_BUILD) $(DEB_PACK)'
	$(Q)rm -rf $(DEB_OUT) && mkdir -p $(DEB_OUT)
	$(Q)$(MAKE) --no-print-directory install DESTDIR=$(abspath $(DEB_OUT))/root PREFIX=/usr \
		LIBDIR=/usr/lib/$$($(CC) -print-multiarch)
	$(call say,DEB,$(DEB_OUT))
	$(Q)doc/deb/build.sh $(DEB_OUT)/root $(VERSION) $(DEB_OUT)
	$(Q)rm -rf $(DEB_OUT)/root

## check-deb: install the packages into a new Debian system, record and report there, and remove them
check-deb: deb
	$(Q)$(MAKE) --no-print-directory deps DEB='$(DEB_CHECK)'
	$(Q)lintian --fail-on error $(DEB_OUT)/*.deb
	$(Q)tests/deb/chroot.sh $(DEB_OUT)

## check-container: demo and test in a new Debian system without privileges, as its root and as an ordinary user
check-container:
	$(Q)$(MAKE) --no-print-directory deps DEB='$(DEB_CHECK)'
	$(Q)tests/container/container.sh

.PHONY: deb check-deb check-container
.PHONY: libdwunw man install uninstall FORCE
-include $(DWUNW_OBJ:.o=.d)

## clean: remove all that was built
clean:
	$(Q)rm -rf $(O)

## help: list these targets
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F': ' '{ printf "  %-14s %s\n", $$1, substr($$0, length($$1) + 3) }'

.PHONY: all demo test acceptance bench bench-preload bench-report bench-unwind bench-cfi acceptance-cfi acceptance-load fuzz check-unit samples build-tests deps check-layers check-headers format \
	format-check clean help
.SECONDARY:

-include $(OBJ:.o=.d) $(UNIT:=.d) $(TOOLS:=.d) $(O)/tests/unit/mleak.d $(wildcard $(O)/tests/fuzz/*.d $(O)/tests/oracle/*.d $(O)/tests/exact/*.d)
