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
BPFTOOL ?= bpftool
OBJCOPY ?= objcopy
STRIP   ?= strip
CFLAGS  ?= -g
Q       := $(if $(V),,@)
say      = @printf '  %-6s %s\n' '$(1)' '$(2)'

ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(if $(WERROR),-Werror) \
	$(if $(DEBUG),-O1 -fno-omit-frame-pointer,-O2) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) \
	-I. -I$(O) $(CFLAGS) -MMD -MP
ALL_LDFLAGS = $(if $(SAN),-fsanitize=$(SAN)) $(LDFLAGS)
LDLIBS      = -lbpf -ldw -lelf -lzstd -lz -liberty -lm -lpthread

MODULES     = format unwind record report
SRC         = mleak.c $(foreach m,$(MODULES),$(wildcard $(m)/*.c))
OBJ         = $(SRC:%.c=$(O)/%.o)
HEADERS     = mleak.h bpf/event.h $(foreach m,$(MODULES),$(wildcard $(m)/*.h))
FUZZ        = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
UNIT        = $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c)) \
	      $(FUZZ:%=$(O)/tests/unit/test_fuzz_%)
FORMATTED   = $(SRC) $(HEADERS) $(wildcard bpf/*.[ch] tests/unit/*.[ch] tests/fuzz/*.[ch] tests/bench/*.c tests/load/*.c samples/*.[ch] samples/*.cc)

BENCH       = $(addprefix $(O)/tests/bench/,pair slices format_speed cost_target cost_probes cost.bpf.o)

SAMPLES     = $(basename $(notdir $(filter-out samples/plugin.c,$(wildcard samples/*.c samples/*.cc)))) \
	      plugin.so
SAMPLE_BINS = $(SAMPLES:%=$(O)/samples/%)

# What a fresh Debian 12 lacks: to build, then to test.
DEB_BUILD = gcc libc6-dev linux-libc-dev clang bpftool libbpf-dev libelf-dev libdw-dev libzstd-dev \
	    zlib1g-dev libiberty-dev
DEB_TEST  = g++ binutils python3 libcmocka-dev clang-format util-linux procps sqlite3 zstd libc6-dbg
DEB_FUZZ  = clang libclang-rt-dev
DEB       = $(DEB_BUILD) $(DEB_TEST)

## all: build mleak (the program is build/mleak)
all: $(O)/mleak

## demo: install what is missing, build, record a leaking sample, show its leak tree and folded stacks
demo: deps
	$(Q)$(MAKE) --no-print-directory all samples
	$(O)/mleak record -o $(O)/demo.mlk -- $(O)/samples/single
	$(O)/mleak report $(O)/demo.mlk
	$(O)/mleak report --format=folded $(O)/demo.mlk > $(O)/demo.folded
	@echo; echo "The folded stacks are in $(O)/demo.folded; flamegraph.pl draws them."

## test: install what is missing, build with ASan and UBSan, run all tests; its last line counts them
test: deps
	$(Q)$(MAKE) --no-print-directory all
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

$(O)/tests/fuzz/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/libunit.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

run-fuzz-%: $(O)/tests/fuzz/fuzz_%
	$(call say,FUZZ,$*)
	$(Q)mkdir -p $(O)/corpus $(O)/found && cp -r tests/fuzz/corpus/$* $(O)/corpus/
	$(Q)$< -max_total_time=$(TIME) -timeout=20 -max_len=8192 -artifact_prefix=$(O)/found/$*- \
		$(O)/corpus/$* 2> $(O)/found/$*.log || { tail -n 40 $(O)/found/$*.log; exit 1; }
	$(Q)tail -n 1 $(O)/found/$*.log

## bench: measure what recording costs a program, the size of traces, and the speed of format/
bench: all $(BENCH)
	-$(Q)python3 tests/bench/cost.py $(O)/tests/bench $(O)/mleak
	$(Q)python3 tests/bench/overhead.py $(O)/mleak $(O)/tests/bench/pair
	$(Q)python3 tests/bench/trace_size.py $(O)/mleak $(O)/tests/bench/slices
	$(Q)$(O)/tests/bench/format_speed $(O)/format_speed.mlk

$(O)/tests/bench/pair $(O)/tests/bench/cost_target $(O)/tests/load/load: $(O)/%: %.c
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(SAMPLE_FLAGS) -o $@ $<

$(O)/tests/bench/cost_probes: $(O)/tests/bench/cost_probes.o $(O)/record/uprobe_multi.o
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

## acceptance: the loads of 30 seconds each, and the most that gets through on this machine
acceptance: deps
	$(Q)$(MAKE) --no-print-directory all $(O)/tests/load/load
	$(Q)MLEAK_LOAD_SECONDS=30 python3 tests/run.py --build $(O) live --filter test_load
	$(Q)python3 tests/load/loadtest.py $(O) 5

## samples: build the leaking samples, stripped, with separate debug files
samples: $(SAMPLE_BINS)

build-tests: all samples $(UNIT) $(O)/tests/load/load $(O)/tests/bench/cost_probes $(O)/tests/bench/cost.bpf.o

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

$(O)/mleak: $(OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(O)/record/probes.o: $(O)/mleak.bpf.skel.h

# The paths of this directory stay out of the object: it is the same wherever it is built.
$(O)/mleak.bpf.o: bpf/mleak.bpf.c bpf/event.h bpf/kernel.h unwind/dwunw_event.h
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

# includes_only DIR, ALLOWED: no file of DIR includes a header of ours beyond ALLOWED (a regex).
includes_only = ! grep -HnE '^\#include "' $(wildcard $(1)/*.[ch]) | grep -vE '\#include "($(2))"'

## check-layers: fail on an include that points up the module map
check-layers:
	$(Q)$(call includes_only,format,format/[^"]*)
	$(Q)$(call includes_only,unwind,(unwind/)?[^/"]*)
	$(Q)$(call includes_only,bpf,bpf/[^"]*|unwind/dwunw_event\.h)
	$(Q)$(call includes_only,record,record/[^"]*|bpf/event\.h|unwind/dwunw[^"]*|format/(trace|writer)\.h|mleak\.h|mleak\.bpf\.skel\.h)
	$(Q)$(call includes_only,report,report/[^"]*|unwind/dwunw\.h|format/(trace|reader)\.h|mleak\.h)

## check-headers: fail on a header that needs another one before it
check-headers:
	$(Q)for h in $(HEADERS); do \
		$(CC) -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -I. -fsyntax-only -x c $$h || exit 1; \
	done

## format: lay out all C files by .clang-format
format:
	$(Q)clang-format -i $(FORMATTED)

## format-check: fail on a file that 'make format' would change
format-check:
	$(Q)clang-format --dry-run -Werror $(FORMATTED)

## clean: remove all that was built
clean:
	$(Q)rm -rf $(O)

## help: list these targets
help:
	@sed -n 's/^## //p' $(firstword $(MAKEFILE_LIST)) | \
		awk -F': ' '{ printf "  %-14s %s\n", $$1, substr($$0, length($$1) + 3) }'

.PHONY: all demo test bench acceptance fuzz check-unit samples build-tests deps check-layers check-headers format \
	format-check clean help
.SECONDARY:

-include $(OBJ:.o=.d) $(UNIT:=.d) $(O)/tests/unit/mleak.d $(wildcard $(O)/tests/fuzz/*.d)
