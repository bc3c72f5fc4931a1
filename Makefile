# ptmem: see README.md. Targets: all check unit fuzz e2e targets demo bench install static layers docs clean.
# Variables: MODE=release|debug|asan  CC  V=1  DESTDIR  prefix  O=FOLDER for objects

MODE ?= release
ifeq ($(origin CC),default)
CC := gcc
endif
prefix ?= /usr/local
VERSION := 0.1
O := build/$(MODE)

PKGS := libelf libdw libunwind-ptrace libunwind-generic
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wno-unused-parameter
CPPFLAGS_ALL := -D_GNU_SOURCE -DPTMEM_VERSION='"$(VERSION)"' -I. -Isrc $(CPPFLAGS)
CFLAGS_release := -O2 -g -fno-tree-slp-vectorize
CFLAGS_debug := -O0 -g3 -DPTMEM_DEBUG -Werror
CFLAGS_asan := -O1 -g -DPTMEM_DEBUG -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_asan := -fsanitize=address,undefined
CFLAGS_ALL := -std=gnu17 $(WARN) $(CFLAGS_$(MODE)) $(CFLAGS)
LDFLAGS_ALL := $(LDFLAGS_$(MODE)) $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2);)

# A file whose name ends in _main.c, and main.c, hold a main(); all else is the library.
SRC := $(wildcard arch/x86_64/*.c src/*.c src/*/*.c)
MAINS := src/main.c src/report/main.c src/memusage/main.c
LIB_SRC := $(filter-out $(MAINS) src/report/% $(wildcard arch/x86_64/blob_*.c),$(SRC))
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o) $(O)/arch/x86_64/pad_blob.o $(O)/arch/x86_64/guard_code.o
BLOB_SRC := arch/x86_64/blob_pad.S arch/x86_64/blob_recorder.c arch/x86_64/blob_marker.c
REPORT_OBJ := $(patsubst %.c,$(O)/%.o,$(filter-out $(MAINS),$(wildcard src/report/*.c)))
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))
FUZZ := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

LIBS = $(shell pkg-config --libs $(PKGS)) -lZydis -liberty -lz -lm
SCREEN_LIBS = $(shell pkg-config --libs ncursesw)
CAIRO_CPPFLAGS = $(shell pkg-config --cflags cairo)
REPORT_LIBS = $(shell pkg-config --libs cairo) -lm

all: programs
	$(Q)for p in ptmem ptmem-report ptmem-memusage; do ln -sfn $(notdir $(O))/$$p build/$$p; done

programs: $(O)/ptmem $(O)/ptmem-report $(O)/ptmem-memusage

$(O)/%.o: %.c
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(O)/src/report/%.o $(O)/tests/unit/%.o: CPPFLAGS_ALL += $(CAIRO_CPPFLAGS)

# The recorder that runs in targets; see scripts/make-blob for what it must not contain.
$(O)/blob.bin: $(BLOB_SRC) $(wildcard arch/x86_64/blob*.h) arch/x86_64/pad_layout.h arch/pad.h arch/unwind_rule.h scripts/make-blob
	$(call say,BLOB,$@)mkdir -p $(@D) && scripts/make-blob "$(CC)" $@ $(BLOB_SRC)

$(O)/arch/x86_64/pad_blob.o: arch/x86_64/pad_blob.S $(O)/blob.bin
	$(call say,AS,$<)mkdir -p $(@D) && $(CC) -DBLOB_FILE='"$(O)/blob.bin"' -DBLOB_ELF='"$(O)/blob.bin.elf"' -c -o $@ $<

$(O)/arch/x86_64/guard_code.o: arch/x86_64/guard_code.S
	$(call say,AS,$<)mkdir -p $(@D) && $(CC) -c -o $@ $<

$(O)/libptmem.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/ptmem: $(O)/src/main.o $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(SCREEN_LIBS)

$(O)/ptmem-report: $(O)/src/report/main.o $(REPORT_OBJ) $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS)

$(O)/ptmem-memusage: $(O)/src/memusage/main.o $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(REPORT_OBJ) $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS) -lcmocka

# The driver is an archive, so that it gives its main() only to programs that have none.
$(O)/tests/fuzz/driver.a: $(O)/tests/fuzz/driver.o
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/driver.a $(REPORT_OBJ) $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS)

# Every program runs, whatever became of the others; what each says stands together.
unit: $(UNIT)
	$(Q)printf '%s\n' $^ | xargs -P $$(nproc) -I '{}' \
		sh -c 'said=$$({} 2>&1); status=$$?; printf "== %s\n%s\n" {} "$$said"; exit $$status'

# RUNS: mutated inputs for the quick ones; the slow ones take a share of it.
RUNS ?= 20000
fuzz: $(FUZZ)
	$(Q)tests/fuzz/run $(O)/tests/fuzz $(RUNS)

# E2E: arguments for the driver (tests/e2e/run --help), names of tests for instance.
e2e: all targets
	$(Q)set -f; BUILD=build tests/e2e/run $(E2E)

# The programs that the end-to-end tests run.
targets:
	$(Q)$(MAKE) $(if $(V),,-s) -f tests/targets/Makefile BUILD=build targets

layers:
	$(Q)scripts/layers

docs: programs
	$(Q)scripts/docs $(O)/ptmem $(O)/ptmem-report

check:
	+$(Q)MAKE='$(MAKE)' scripts/check

demo:
	$(Q)scripts/install-deps build demo
	$(Q)$(MAKE) all
	$(Q)scripts/demo build/ptmem build/ptmem-report

bench:
	$(Q)scripts/install-deps build test bench
	$(Q)$(MAKE) MODE=release all
	$(Q)scripts/bench $(BENCH)

# Debian has no static Zydis: without one everything but Zydis and libc goes in.
STATIC_LIBS = $(shell pkg-config --static --libs $(PKGS) ncursesw) -liberty -lz -lm
HAS_STATIC_ZYDIS = $(filter /%,$(shell $(CC) -print-file-name=libZydis.a))
STATIC_LINK = $(if $(HAS_STATIC_ZYDIS),-static $(STATIC_LIBS) -lZydis -lZycore,\
	-static-libgcc -Wl$(,)-Bstatic $(filter-out -pthread -lpthread,$(STATIC_LIBS)) -Wl$(,)-Bdynamic -lZydis)
, := ,

static: $(O)/src/main.o $(O)/libptmem.a
	$(call say,LD,build/ptmem-static)$(CC) $(LDFLAGS_ALL) -o build/ptmem-static $^ $(STATIC_LINK)
	$(Q)$(if $(HAS_STATIC_ZYDIS),,echo "build/ptmem-static needs libc and libZydis: no libZydis.a here")

SHARE := $(DESTDIR)$(prefix)/share
install: programs
	install -d $(DESTDIR)$(prefix)/bin
	install $(O)/ptmem $(O)/ptmem-report $(O)/ptmem-memusage $(DESTDIR)$(prefix)/bin
	install -Dm644 -t $(SHARE)/man/man1 man/ptmem.1 man/ptmem-report.1 man/ptmem-memusage.1
	install -Dm644 completions/ptmem.bash $(SHARE)/bash-completion/completions/ptmem
	install -Dm644 completions/ptmem.bash $(SHARE)/bash-completion/completions/ptmem-report
	install -Dm644 -t $(SHARE)/zsh/site-functions completions/_ptmem completions/_ptmem-report
	install -Dm644 -t $(SHARE)/fish/vendor_completions.d completions/ptmem.fish completions/ptmem-report.fish
	install -Dm644 -t $(SHARE)/doc/ptmem README.md LICENSE
	install -Dm644 -t $(DESTDIR)$(prefix)/include include/ptmem.h

# The assembler reads the script, which gcc -MMD does not see.
$(O)/src/output/flame.o: src/output/flame.js

clean:
	rm -rf build

.PHONY: all programs unit fuzz e2e targets layers docs check demo bench static install clean
.SECONDARY:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
