# ashlar: build, tests and checks. `make help` lists the targets.
# Every .c of pools/ kernels/ engine/ is in the program, every tests/*/test_*.c is a test: adding a file needs no edit.

VARIANT ?= release
ifeq ($(origin CC),default)
CC      := gcc
endif
BUILD   := build/$(VARIANT)
PROGRAM := $(if $(filter release,$(VARIANT)),build,$(BUILD))/ashlar

SOURCES := $(wildcard pools/*.c kernels/*.c kernels/*/*.c engine/*.c engine/*/*.c engine/*/*/*.c)
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
MAIN    := $(BUILD)/engine/main.o
LIBRARY := $(BUILD)/libashlar.a
TESTS   := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/*/test_*.c))

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
            -Wswitch-enum -Wvla -Walloca -Werror
DEFINES  := -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE
# Sanitized builds take -O1, where gcc's flow warnings see less and guess more.
OPTIMIZE := $(if $(SANITIZE),-O1,-O2) -g -fno-omit-frame-pointer
WARNINGS += $(if $(SANITIZE),$(if $(findstring gcc,$(CC)),-Wno-format-truncation -Wno-maybe-uninitialized))
CFLAGS    = -std=c11 $(OPTIMIZE) $(DEFINES) $(WARNINGS) -I. -I$(BUILD) -pthread $(SANITIZE) \
            $(if $(SANITIZE),-DASHLAR_SANITIZED) $(EXTRA)
LDFLAGS  := -pthread -Wl,-z,dynamic-undefined-weak $(SANITIZE)
LDLIBS   := -ljpeg -lpng16 -lz -lnettle -lutf8proc -lm

.PHONY: all
all: $(PROGRAM) ## build the server

$(PROGRAM): $(MAIN) $(LIBRARY)
	$(QUIET) $(CC) $(LDFLAGS) -o $@ $(MAIN) $(LIBRARY) $(LDLIBS)

$(LIBRARY): $(filter-out $(MAIN),$(OBJECTS))
	@rm -f $@
	@$(AR) rcs $@ $^

# One short line a file; `make V=1` shows the commands.
QUIET = $(if $(V),,@echo "  $(notdir $(CC))  $@" &&)

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(QUIET) $(CC) $(CFLAGS) $(FENCE) -MMD -MP -c -o $@ $<

# Fence 1: the product's files cannot name an allocator; domain_*.c alone obtain memory.
$(BUILD)/pools/%.o $(BUILD)/kernels/%.o $(BUILD)/engine/%.o: FENCE = -include pools/no_heap.h
$(BUILD)/pools/domain_%.o: FENCE =

# The architectures that are compiled in: a file of engine/model/arch/ each (engine/model/registry.c).
ARCHS := $(basename $(notdir $(wildcard engine/model/arch/*.c)))
$(BUILD)/model_list.h: $(wildcard engine/model/arch/*.c)
	@mkdir -p $(@D)
	@printf 'ARCH(%s)\n' $(ARCHS) > $@
$(BUILD)/engine/model/registry.o: $(BUILD)/model_list.h

# Kernel variants are chosen at run time; each file is compiled for its own instruction set.
# In sanitized builds they stay as they are (instrumented they take minutes to compile): kerncheck's guard bands watch.
PLAIN := $(if $(SANITIZE),-fno-sanitize=all -O2)
%/kernels_generic.o: EXTRA = $(PLAIN)
%_avx2.o: EXTRA = -mavx2 -mfma -mf16c $(PLAIN)
%_avx512.o: EXTRA = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma $(PLAIN)
%_avx512bf16.o: EXTRA = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma $(PLAIN)
%_amx.o: EXTRA = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma -mamx-tile -mamx-bf16 \
               $(PLAIN)

$(BUILD)/tests/%: tests/%.c $(BUILD)/tests/harness.o $(LIBRARY)
	@mkdir -p $(@D)
	$(QUIET) $(CC) $(CFLAGS) -DASHLAR_TEST -MMD -MP $(LDFLAGS) -o $@ $< $(filter %.o,$^) $(LIBRARY) $(LDLIBS) -lcunit

# kerncheck: the ops' one driver, as a test and as a program (kerncheck --op linear --seed 7, kerncheck --bench).
KERNCHECK := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/kernels/kerncheck_*.c))
$(BUILD)/tests/kernels/test_op $(BUILD)/tests/kernels/kerncheck: $(KERNCHECK)

.PHONY: kerncheck
kerncheck: $(BUILD)/tests/kernels/kerncheck ## check every kernel against its oracle, at length
	@$<

.PHONY: demo
demo: ## install, build, start the demo model, ask three questions about pictures, stop
	@tools/packages.sh demo
	@$(MAKE) --no-print-directory -j2 build/ashlar build/tools/interposer.so
	@tools/demo.sh

.PHONY: test-c
test-c: $(TESTS)
	@tests/run.sh $(TESTS)

# Whole-server tests are Python; one of them uses the official client, so they run in an environment of their own.
SERVER_TESTS := $(wildcard tests/*/test_*.py)
PYTHON       := build/venv/bin/python

build/venv/ready: tests/packages.txt
	@python3 -m venv build/venv
	@build/venv/bin/pip install --quiet -r $<
	@touch $@

.PHONY: test-server
test-server: $(PROGRAM) build/venv/ready build/tools/tidy build/tools/interposer.so ## run the whole-server tests alone
	@PYTHON=$(PYTHON) ASHLAR=$(PROGRAM) tests/run.sh $(SERVER_TESTS)

.PHONY: test
test: ## install what tests need, build, run the whole quick suite
	@tools/packages.sh test
	@$(MAKE) --no-print-directory -j2 $(PROGRAM) $(TESTS) build/venv/ready build/tools/interposer.so build/tools/tidy \
	    build/ashlar-parity
	@PYTHON=$(PYTHON) SOAK_SECONDS=120 tests/run.sh $(TESTS) $(SERVER_TESTS) tools/noheap.py tools/soak.py

.PHONY: sim
sim: $(BUILD)/tests/sim/test_sim ## the scheduler under 20,000 seeded crowds, with a fake clock and fake arithmetic
	@SIM_SEEDS=$(or $(SIM_SEEDS),20000) $(BUILD)/tests/sim/test_sim

.PHONY: faults
faults: $(PROGRAM) ## fence 6 in full: every get of every pool is refused, once and from then on
	@ASHLAR=$(PROGRAM) python3 tools/faults.py

.PHONY: plan-goldens
plan-goldens: $(PROGRAM) ## write tests/plan/*.golden and the README's plan anew, after a change of memory that is meant
	@ASHLAR=$(PROGRAM) python3 tests/plan/test_plans.py make

# Lint: our own linter first (fast, and it explains itself), then clang-tidy and cppcheck; warnings are errors.
LINTED := $(SOURCES) $(filter-out tools/interposer.c,$(wildcard tools/*.c))

build/tools/tidy: tools/tidy.c tools/tidy_table.h
	@mkdir -p $(@D)
	$(QUIET) $(CC) $(CFLAGS) -o $@ $<

.PHONY: tidy
tidy: build/tools/tidy ## check lengths, names, layering, tests for each file (our linter; quick)
	@build/tools/tidy tools/tidy_exceptions.txt \
	    $$(git ls-files -co --exclude-standard -- '*.c' '*.h' '*.py' '*.sh' Makefile | grep -vE '^(tests/data|demo)/')

.PHONY: headers
headers: ## compile each header alone
	@for header in $(filter-out %_table.h pools/no_heap.h,$(wildcard *.h pools/*.h kernels/*.h engine/*.h \
	    engine/*/*.h)); do \
	    $(CC) $(CFLAGS) -Wno-unused -fsyntax-only -x c $$header || exit 1; done

.PHONY: clang with-clang
clang: ## build the server and all tests with clang, too
	@$(MAKE) --no-print-directory VARIANT=clang CC=clang with-clang

with-clang: $(PROGRAM) $(TESTS)

.PHONY: lint
lint: tidy headers clang ## tidy, each header alone, the build with clang, clang-tidy, cppcheck
	@printf '%s\n' $(LINTED) | xargs -P 2 -n 4 sh -c 'clang-tidy --quiet "$$@" -- -std=c11 $(DEFINES) -I. -Ibuild/release \
	    -march=sapphirerapids 2>/dev/null' clang-tidy
	@cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppressions-list=tools/cppcheck.txt -j 2 \
	    --enable=warning,performance,portability -I. $(DEFINES) pools kernels engine tools

# Fence 2.
.PHONY: symcheck
symcheck: $(LIBRARY) $(MAIN) ## check the symbols of every object (who may obtain memory, who exports what)
	@tools/symcheck.sh $(BUILD)

# Fence 4.
build/tools/interposer.so: tools/interposer.c pools/seal.h
	@mkdir -p $(@D)
	$(QUIET) $(CC) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

.PHONY: noheap
noheap: $(PROGRAM) build/tools/interposer.so ## a real server, 300 requests: no heap, brk, mmap call after ready
	@python3 tools/noheap.py

.PHONY: soak
soak: $(PROGRAM) build/tools/interposer.so ## 20,000 mixed requests over 256 connections (SOAK_REQUESTS, SOAK_SECONDS)
	@ASHLAR=$(PROGRAM) python3 tools/soak.py

# Programs of tools/: build/ashlar-NAME from NAME.c and the NAME_*.c beside it.
TOOLS := build/ashlar-bench build/ashlar-parity
.SECONDEXPANSION:
$(TOOLS): build/ashlar-%: $$(wildcard tools/$$*.c tools/$$*_*.[ch]) $(LIBRARY)
	$(QUIET) $(CC) $(CFLAGS) -MMD -MP -MF build/ashlar-$*.d $(LDFLAGS) -o $@ $(filter tools/%.c,$^) $(LIBRARY) $(LDLIBS)
-include $(TOOLS:=.d)

.PHONY: parity
parity: build/ashlar-parity ## compare the model with the reference: fixtures in both types, the demo's evaluation set
	@build/ashlar-parity tests/data/fixtures
	@build/ashlar-parity --eval demo/eval --model-path demo/model

.PHONY: bench
bench: build/ashlar-bench ## build the load generator (build/ashlar-bench --help)

.PHONY: bench-seed
bench-seed: $(PROGRAM) build/ashlar-bench ## the seed's workload on two models, with the verdict on memory
	@python3 tools/bench_seed.py

.PHONY: bench-pace
bench-pace: $(PROGRAM) ## gaps between a stream's tokens, alone and beside 1080p pictures
	@ASHLAR=$(PROGRAM) python3 tools/bench_pace.py

# Sanitizers: the C suite, then a short load on the whole server.
.PHONY: asan ubsan tsan
asan ubsan tsan: ## the suite and a short load under a sanitizer
	@$(MAKE) --no-print-directory VARIANT=$@ SANITIZE="$(SANITIZE_$@)" sanitized
SANITIZE_asan  := -fsanitize=address
SANITIZE_ubsan := -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all
SANITIZE_tsan  := -fsanitize=thread

.PHONY: sanitized
sanitized: $(PROGRAM) $(TESTS)
	@tests/run.sh $(TESTS)
	@ASHLAR=$(PROGRAM) python3 tests/server/mixture.py
	@ASHLAR=$(PROGRAM) SOAK_MEMORY=0 SOAK_REQUESTS=800 SOAK_SECONDS=150 SOAK_CONNECTIONS=48 python3 tools/soak.py

# Fuzzing: clang's libFuzzer over the parsers, FUZZ_SECONDS each, corpora from tests/data.
FUZZ_SECONDS ?= 30
FUZZERS := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/fuzz/fuzz_*.c))

.PHONY: fuzz fuzzers
fuzz: ## fuzz every parser for FUZZ_SECONDS (30) each
	@$(MAKE) --no-print-directory VARIANT=fuzz CC=clang SANITIZE="-fsanitize=fuzzer-no-link,address,undefined" fuzzers
	@tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZERS:$(BUILD)/%=build/fuzz/%)

fuzzers: $(FUZZERS)

$(BUILD)/tests/fuzz/%: tests/fuzz/%.c $(LIBRARY)
	@mkdir -p $(@D)
	$(QUIET) $(CC) $(CFLAGS) -MMD -MP $(LDFLAGS) -fsanitize=fuzzer -o $@ $< $(LIBRARY) $(LDLIBS)

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.SECONDARY:
-include $(OBJECTS:.o=.d) $(TESTS:=.d) $(KERNCHECK:.o=.d) $(FUZZERS:=.d)
