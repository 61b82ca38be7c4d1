# mleak - objects in $(O); the rooms' own rules are in their build.mk.  'make help' lists the targets.
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
SUBMAKE  = $(MAKE) --no-print-directory
# All CPUs, unless make was told how many.
JOBS     = $(if $(findstring -j,$(MAKEFLAGS)),,-j$(shell nproc))

ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE -Wall -Wextra $(if $(WERROR),-Werror) \
	$(if $(DEBUG),-O1 -fno-omit-frame-pointer,-O2) \
	$(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all) \
	-I. -I$(O) $(CFLAGS) -MMD -MP
ALL_LDFLAGS = $(if $(SAN),-fsanitize=$(SAN)) -Wl,--build-id $(LDFLAGS)
# The program is optimised as a whole: an event passes many small functions of different files.
LTO         = $(if $(DEBUG)$(SAN),,$(if $(filter gcc,$(CC)),-flto=auto))
LDLIBS      = -lbpf -lZydis -ldw -lelf -lzstd -llzma -lz -lprotobuf-c -liberty -lncursesw -ltinfo -lm -lpthread

# All files below the folders $(1) with the names $(2), but for what runs in other programs.
files_of    = $(sort $(shell find $(1) \( -path record/libpreload -o -path record/injected \) -prune -o \
		-type f -name '$(2)' -print))
MODULES     = format unwind cmdline record report
SRC         = mleak.c $(call files_of,$(MODULES),*.c)
OBJ         = $(SRC:%.c=$(O)/%.o) $(O)/report/machine/profile.pb-c.o
LIBPRELOAD  = $(sort $(shell find record/libpreload -type f -name '*.[chS]' -o -name '*.inc'))
HEADERS     = array.h mleak.h bpf/event.h bpf/python.h $(call files_of,$(MODULES),*.h) $(filter %.h,$(LIBPRELOAD)) \
	      record/injected/injected.h
INSTALLED_HEADERS = $(wildcard unwind/dwunw*.h)
FORMATTED   = $(SRC) $(HEADERS) $(filter %.c,$(LIBPRELOAD)) $(wildcard record/injected/*.[ch] bpf/*.[ch]) \
	      $(sort $(shell find tests samples -path tests/live -prune -o -name '*.[ch]' -print \
			-o -path 'samples/*.cc' -print))

# What a fresh Debian 12 lacks: to build, then for each of the other things.
DEB_BUILD = gcc libc6-dev linux-libc-dev clang bpftool libbpf-dev libelf-dev libdw-dev libzstd-dev \
	    libzydis-dev zlib1g-dev liblzma-dev libiberty-dev libncurses-dev libprotobuf-c-dev \
	    protobuf-c-compiler
DEB_MAN   = scdoc
DEB_DEMO  = g++ binutils libc6-dbg
DEB       = $(DEB_BUILD) $(DEB_MAN) $(DEB_PACK) $(DEB_TEST)

## all: build mleak (the program is build/mleak)
all: $(O)/mleak $(O)/libmleak-preload.so $(O)/libmleak-wrap.a

## demo: install what is missing, build, record a leaking sample, show its leak tree and a page of it
demo:
	$(Q)$(SUBMAKE) deps DEB='$(DEB_BUILD) $(DEB_DEMO)'
	$(Q)$(SUBMAKE) $(JOBS) all samples
	$(O)/mleak record -o $(O)/demo.mlk -- $(O)/samples/single
	$(O)/mleak report $(O)/demo.mlk
	$(O)/mleak report --format=html $(O)/demo.mlk > $(O)/demo.html
	@printf '\nRecorded by the backend %s.\n' "$$($(O)/mleak info $(O)/demo.mlk | sed -n 's/^with  *//p')"
	@printf '%s\n%s\n' $(abspath $(O))/demo.html \
		'This page, for any browser, shows what the sample leaked: the answer, its memory over time, flame graphs, tables.'

## check: build, and run the unit and cli tests within a minute; T=REGEX: only those with such names
## check-live: as root, build with ASan and UBSan, and run the live tests; T=REGEX: only those
## test: install what is missing, build with ASan and UBSan, run all tests but those in tests/long.txt: 10 minutes
## test-all: the same with all tests, in half an hour; the last line of both counts them
test: SHORT = --quick
test test-all: deps speedscope
	$(Q)$(SUBMAKE) $(JOBS) servers all man libdwunw
	$(Q)$(SUBMAKE) $(JOBS) O=$(O)/san SAN=address,undefined DEBUG=1 WERROR=1 build-tests
	$(Q)$(SUBMAKE) lint
	$(Q)MLEAK_FAST=$(abspath $(O))/mleak python3 tests/run.py --build $(O)/san $(SHORT)

## lint: all checks of layers, headers, comments, format, long texts, repeats, uncalled tests, and tests/long.txt
lint: check-layers check-headers check-comments format-check
	$(Q)python3 tests/lint/prose.py
	$(Q)python3 tests/lint/repeats.py
	$(Q)python3 tests/lint/uncalled.py
	$(Q)python3 tests/lint/long.py

## deps: say which packages are missing and install them (Debian, as root); elsewhere print the list
deps:
	$(Q)doc/deb/deps.sh $(DEB)

include unwind/build.mk bpf/build.mk record/libpreload/build.mk record/injected/build.mk report/machine/build.mk \
	report/page/build.mk samples/build.mk tests/build.mk tests/bench/build.mk doc/build.mk

# What page_write.c and image.c take in by the assembler is known to no other file.
$(filter-out $(O)/report/page/page_write.o $(O)/record/inject/image.o,$(OBJ)): private ALL_CFLAGS += $(LTO)

$(O)/mleak: $(OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LTO) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/%.o: %.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -c -o $@ $<

## check-layers: fail on an include that doc/rooms.tsv does not allow, on folders or files that are too large
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

## check-comments: fail on a declaration in a header without a comment
check-comments:
	$(Q)python3 tests/lint/comments.py

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
	@sed -n 's/^## //p' Makefile $(filter %build.mk,$(MAKEFILE_LIST)) | \
		awk -F': ' '{ printf "  %-16s %s\n", $$1, substr($$0, length($$1) + 3) }'

.PHONY: all demo test test-all lint deps check-layers check-headers format format-check clean help FORCE
.SECONDARY:

-include $(OBJ:.o=.d) $(DWUNW_OBJ:.o=.d) $(UNIT:=.d) $(TOOLS:=.d) $(O)/tests/unit/mleak.d \
	$(wildcard $(O)/tests/fuzz/*.d $(O)/tests/oracle/*.d $(O)/tests/exact/*.d $(O)/tests/bench/*.d)
