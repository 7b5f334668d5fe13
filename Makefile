# ashlar: build, tests and checks. `make help` lists the targets.
# Every .c of pools/ kernels/ engine/ is in the program, every tests/*/test_*.c is a test: adding a file needs no edit.

VARIANT ?= release
CC      ?= gcc
BUILD   := build/$(VARIANT)

SOURCES := $(wildcard pools/*.c kernels/*.c kernels/*/*.c engine/*.c engine/*/*.c engine/*/*/*.c)
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o)
MAIN    := $(BUILD)/engine/main.o
LIBRARY := $(BUILD)/libashlar.a
TESTS   := $(patsubst %.c,$(BUILD)/%,$(wildcard tests/*/test_*.c))

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wundef \
            -Wswitch-enum -Wvla -Walloca -Werror
DEFINES  := -D_POSIX_C_SOURCE=200809L -D_DEFAULT_SOURCE
OPTIMIZE := -O2 -g -fno-omit-frame-pointer
CFLAGS    = -std=c11 $(OPTIMIZE) $(DEFINES) $(WARNINGS) -I. -I$(BUILD) -pthread $(SANITIZE) $(EXTRA)
LDFLAGS  := -pthread $(SANITIZE)
LDLIBS   := -ljpeg -lpng16 -lz -lnettle -lutf8proc -lm

.PHONY: all
all: build/ashlar ## build the server

build/ashlar: $(MAIN) $(LIBRARY)
	$(CC) $(LDFLAGS) -o $@ $(MAIN) $(LIBRARY) $(LDLIBS)

$(LIBRARY): $(filter-out $(MAIN),$(OBJECTS))
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(FENCE) -MMD -MP -c -o $@ $<

# Fence 1: the product's files cannot name an allocator; domain_*.c alone obtain memory.
$(BUILD)/pools/%.o $(BUILD)/kernels/%.o $(BUILD)/engine/%.o: FENCE = $(if $(wildcard pools/no_heap.h),-include pools/no_heap.h)
$(BUILD)/pools/domain_%.o: FENCE =

# The architectures that are compiled in: a file of engine/model/arch/ each (engine/model/registry.c).
ARCHS := $(basename $(notdir $(wildcard engine/model/arch/*.c)))
$(BUILD)/model_list.h: $(wildcard engine/model/arch/*.c)
	@mkdir -p $(@D)
	@printf 'ARCH(%s)\n' $(ARCHS) > $@
$(BUILD)/engine/model/registry.o: $(BUILD)/model_list.h

# Kernel variants are chosen at run time; each file is compiled for its own instruction set.
%_avx2.o: EXTRA = -mavx2 -mfma -mf16c
%_avx512.o: EXTRA = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma
%_avx512bf16.o: EXTRA = -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512bf16 -mfma

$(BUILD)/tests/%: tests/%.c $(BUILD)/tests/harness.o $(LIBRARY)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -DASHLAR_TEST -MMD -MP $(LDFLAGS) -o $@ $< $(BUILD)/tests/harness.o $(LIBRARY) $(LDLIBS) -lcunit

.PHONY: demo
demo: ## install, build, start the demo model, ask three questions about pictures, stop
	@tools/packages.sh demo
	@$(MAKE) --no-print-directory -j2 build/ashlar
	@tools/demo.sh

.PHONY: test-c
test-c: $(TESTS)
	@tests/run.sh $(TESTS)

# Lint: our own linter first (fast, and it explains itself), then clang-tidy and cppcheck; warnings are errors.
LINTED := $(SOURCES) $(wildcard tests/*.c tests/*/*.c tools/*.c)

build/tools/tidy: tools/tidy.c tools/tidy_table.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -o $@ $<

.PHONY: tidy
tidy: build/tools/tidy ## check lengths, names, layering, tests for each file (our linter; quick)
	@build/tools/tidy tools/tidy_exceptions.txt \
	    $$(git ls-files -co --exclude-standard -- '*.c' '*.h' '*.py' '*.sh' Makefile | grep -vE '^(tests/data|demo)/')

.PHONY: lint
lint: tidy ## tidy, clang-tidy, cppcheck
	@printf '%s\n' $(LINTED) | xargs -P 2 -n 4 sh -c 'clang-tidy --quiet "$$@" -- -std=c11 $(DEFINES) -I. -Ibuild/release \
	    2>/dev/null' clang-tidy
	@cppcheck --quiet --std=c11 --error-exitcode=1 --inline-suppr --suppressions-list=tools/cppcheck.txt -j 2 \
	    --enable=warning,performance,portability -I. $(DEFINES) pools kernels engine tools

build/ashlar-bench: $(wildcard tools/bench*.[ch]) $(LIBRARY)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter tools/%.c,$^) $(LIBRARY) -ljpeg -lm

.PHONY: bench
bench: build/ashlar-bench ## build the load generator (build/ashlar-bench --help)

# Fence 4: counts heap calls of a whole process; see tools/noheap.py.
build/tools/interposer.so: tools/interposer.c pools/seal.h
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -fPIC -shared -o $@ $< -ldl

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.SECONDARY:
-include $(OBJECTS:.o=.d) $(TESTS:=.d)
