# tests/build.mk - the tests' programs, and the targets that run them

FUZZ        = $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
UNIT        = $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c)) \
	      $(FUZZ:%=$(O)/tests/unit/test_fuzz_%)
ORACLE      = $(patsubst tests/oracle/%.c,$(O)/tests/oracle/%,$(wildcard tests/oracle/cfi*.c))
TOOLS       = $(patsubst %.c,$(O)/%,$(wildcard tests/tools/*.c))
LOAD        = $(O)/tests/load/load $(addprefix $(O)/tests/bench/,cost_target cost_probes cost.bpf.o)
# What runs in the guests of check-kernels.
GUEST       = $(O)/tests/guest/verify $(O)/tests/guest/inject_target
GUEST_UNIT  = $(filter $(O)/tests/unit/test_inject_remote%,$(UNIT))

# Any rustc will do, rustup's too.
RUSTC     = $(if $(shell command -v rustc),,rustc)
DEB_TEST  = g++ git perl binutils python3 libcmocka-dev clang-format util-linux procps sqlite3 zstd libc6-dbg \
	    xz-utils curl ca-certificates ed bc dwz less elfutils libdebuginfod1 llvm gdb pkg-config groff-base zsh \
	    libjemalloc2 libtcmalloc-minimal4 libmimalloc2.0 musl-tools libjemalloc-dev redis-tools strace lintian \
	    heaptrack valgrind php-cli ruby chromium bubblewrap golang-go golang-github-google-pprof-dev \
	    qemu-system-x86 cpio libcap2-bin tmux $(RUSTC) $(DEB_SERVERS)
# What nginx, postgresql and ab need that nothing else brings.
DEB_SERVERS = libapr1 libaprutil1 libpq5 libxslt1.1 libpcre2-8-0 libreadline8 tzdata
DEB_FUZZ  = clang libclang-rt-dev

EXACT_STRESS = $(addprefix $(O)/tests/exact/stress-,O2 O0 O3-lto clang)
EXACT        = $(O)/tests/exact/sampler.so $(O)/tests/exact/compare $(EXACT_STRESS)

build-tests: all man samples $(UNIT) $(ORACLE) $(EXACT) $(TOOLS) $(LOAD) $(GUEST)

# Fetched only once, whatever is built with which options.
SERVERS   ?= build/servers

## servers: fetch nginx, postgresql and ab, which tests use, from Debian; nothing is installed or started
servers:
	$(Q)[ -d $(SERVERS) ] || tests/tools/get_servers.sh $(SERVERS)

# The tests that T=REGEX finds, or all; and of unit/ the programs that have such.
FILTER      = $(if $(T),--filter '$(T)',--quick)
CHECK_UNIT  = $(shell python3 tests/run.py --programs $(FILTER))
# Nothing of cli/ is wanted when the regex begins with unit/.
CHECK_CLI   = $(if $(filter unit/%,$(T)),,all samples $(TOOLS) $(ORACLE) \
		$(if $(T),$(EXACT),$(filter-out $(EXACT_STRESS),$(EXACT))) \
		$(if $(shell command -v $(SCDOC)),man))

# Without sanitizers and optimisation of the whole: that takes less than a minute after a change.
check:
	$(Q)$(SUBMAKE) $(JOBS) O=$(O)/check DEBUG=1 build-check
	$(Q)MLEAK_FAST=$(abspath $(O))/check/mleak python3 tests/run.py --build $(O)/check $(FILTER) \
		unit $(if $(CHECK_CLI),cli)

# Asked for only here: to build mleak takes no python3.
ifneq ($(filter build-check,$(MAKECMDGOALS)),)
build-check: $(CHECK_CLI) $(CHECK_UNIT:%=$(O)/tests/unit/%)
endif

check-live: servers
	$(Q)$(SUBMAKE) all man libdwunw
	$(Q)$(SUBMAKE) O=$(O)/san SAN=address,undefined DEBUG=1 WERROR=1 build-tests
	$(Q)MLEAK_FAST=$(abspath $(O))/mleak python3 tests/run.py --build $(O)/san $(if $(T),--filter '$(T)') live

## check-unit: only the unit tests
check-unit:
	$(Q)$(SUBMAKE) O=$(O)/san SAN=address,undefined DEBUG=1 WERROR=1 build-tests
	$(Q)python3 tests/run.py --build $(O)/san unit

## fuzz: run each fuzz target for TIME=60 seconds, from a copy of its corpus; finds in build/fuzz/found
fuzz: export TIME := $(or $(TIME),60)
fuzz:
	$(Q)$(SUBMAKE) deps DEB='$(DEB_FUZZ) $(DEB_BUILD)'
	$(Q)rm -rf $(O)/fuzz/corpus $(O)/fuzz/found
	$(Q)$(SUBMAKE) -k O=$(O)/fuzz CC=$(CLANG) SAN=address,undefined DEBUG=1 \
		CFLAGS='-g -fsanitize=fuzzer-no-link' $(FUZZ:%=run-fuzz-%)
	$(Q)$(SUBMAKE) all
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

# What reads call frame information, with nothing that it does not need.
CFI_OBJ     = $(patsubst %.c,$(O)/%.o,$(wildcard unwind/cfi/*.c) unwind/elf/elf_util.c unwind/elf/addr_index.c \
		unwind/golang/pclntab.c)

$(O)/tests/bench/cfi $(ORACLE): $(O)/%: $(O)/%.o $(CFI_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# What makes the calls that a unit test traces.
$(O)/tests/unit/allocator_calls: tests/unit/allocator_calls.c
	$(call say,SAMPLE,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE $(SAMPLE_FLAGS) -o $@ $< -ldl

$(O)/tests/unit/test_record_returns_steps: | $(O)/tests/unit/allocator_calls

## acceptance-cfi: compare all call frame information of this machine with libdw's and readelf's
acceptance-cfi: deps
	$(Q)$(SUBMAKE) $(ORACLE)
	$(Q)python3 tests/oracle/cfi_all.py $(O)/tests/oracle /usr/bin /usr/lib

# The exactness oracle: a preload library and a stress program as users have them, never sanitized,
# and a tool of this build which compares.
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
	$(Q)$(SUBMAKE) all $(EXACT)
	$(Q)python3 tests/exact/exact.py --build $(O) --long
	$(Q)$(SUBMAKE) acceptance-cfi
	$(Q)$(SUBMAKE) acceptance-reach
	$(Q)$(SUBMAKE) acceptance-graphs
	$(Q)$(SUBMAKE) acceptance-inject
	$(Q)$(SUBMAKE) acceptance-frames
	$(Q)$(SUBMAKE) acceptance-load

# Lost ones, and held ones; of each a twelfth has each shape.
PLANT ?= 10008,1000008

## acceptance-reach: plant a million blocks in each of six programs, and count those that are wrongly lost
acceptance-reach: deps servers
	$(Q)$(SUBMAKE) all
	$(Q)rm -f $(O)/planted.txt
	$(Q)MLEAK_PLANT=$(PLANT) MLEAK_PLANT_TABLE=$(abspath $(O))/planted.txt python3 tests/run.py --build $(O) \
		--jobs 1 --filter test_reach_planted live
	$(Q)cat $(O)/planted.txt

# Of each pace.
GRAPHS ?= 5

## acceptance-graphs: change random graphs of a million blocks meanwhile, and count blocks that are wrongly lost
acceptance-graphs: deps
	$(Q)$(SUBMAKE) all
	$(Q)rm -f $(O)/graphs.txt
	$(Q)MLEAK_GRAPH=1000000 MLEAK_GRAPH_SEEDS=$(GRAPHS) MLEAK_GRAPH_TABLE=$(abspath $(O))/graphs.txt \
		python3 tests/run.py --build $(O) --jobs 1 --filter ManyGraphsTest live
	$(Q)cat $(O)/graphs.txt

# Attaches and detaches with each allocator and server, and recorders that are killed at each of four occasions.
CYCLES ?= 1000
KILLS  ?= 200

## acceptance-inject: put code into programs under load and take it out again, a thousand times; kill recorders
acceptance-inject: deps servers
	$(Q)$(SUBMAKE) all
	$(Q)MLEAK_INJECT_CYCLES=$(CYCLES) MLEAK_INJECT_KILLS=$(KILLS) python3 tests/run.py --build $(O) \
		--filter 'test_inject_(cycles|servers)' live

MARKS ?= 100000

## acceptance-frames: compare the frames of Python, PHP and Ruby of 100,000 blocks of each kind with their backtraces
acceptance-frames: deps
	$(Q)$(SUBMAKE) all
	$(Q)MLEAK_MARKS=$(MARKS) python3 tests/run.py --build $(O) \
		--filter 'test_(python|php|ruby)\..*(each_mark|attached)' live

## acceptance-load: loads of 30 seconds each, the instructions of an allocation, the most that gets through
acceptance-load: deps
	$(Q)$(SUBMAKE) all $(LOAD)
	$(Q)MLEAK_LOAD_SECONDS=30 python3 tests/run.py --build $(O) load
	$(Q)python3 tests/load/loadtest.py $(O) 5

# Not sanitized, for the guests that it runs in are slow.
$(O)/tests/guest/verify: tests/guest/verify.c $(O)/mleak.bpf.skel.h $(O)/reach.bpf.skel.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra $(if $(WERROR),-Werror) -I. -I$(O) -o $@ $< -lbpf

# As the live tests build it; there is no compiler in each guest.
$(O)/tests/guest/inject_target: tests/live/inject_target.c samples/sample.h
	$(call say,CC,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -O1 -g -fno-builtin -pthread -I. -o $@ $<

## check-kernels: boot Debian's kernels under QEMU, and run tests in them (fetches 210 MB, then takes 10 minutes)
check-kernels: deps
	$(Q)$(SUBMAKE) all samples $(GUEST) $(GUEST_UNIT)
	$(Q)python3 tests/kernels/check.py --build $(O)

## check-glibc: record programs that run with the C libraries of Debian 13 and of sid (fetches 4 MB, then takes 3 minutes)
check-glibc: deps
	$(Q)$(SUBMAKE) all
	$(Q)python3 tests/glibc/check.py --build $(O)

# Unit tests link what they need out of an archive of everything; its main() goes by another name.
$(O)/tests/unit/mleak.o: mleak.c
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) -Dmain=mleak_main -c -o $@ $<

$(O)/libunit.a: $(filter-out $(O)/mleak.o,$(OBJ)) $(O)/tests/unit/mleak.o $(O)/tests/fuzz/memory.o
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/tests/tools/short_names: $(filter %/short_name.o %/name_brackets.o %/report/base/text.o,$(OBJ))

$(O)/tests/tools/reach_trace: $(filter $(O)/format/%,$(OBJ))

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

.PHONY: check check-live check-unit build-check build-tests servers fuzz acceptance acceptance-cfi acceptance-reach acceptance-graphs acceptance-inject acceptance-frames acceptance-load check-kernels check-glibc
