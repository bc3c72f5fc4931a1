# ptmem: see README.md. Targets: all check demo bench install clean.
# Variables: MODE=release|debug|asan  CC  V=1  DESTDIR  prefix

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
CFLAGS_release := -O2 -g
CFLAGS_debug := -O0 -g3 -DPTMEM_DEBUG -Werror
CFLAGS_asan := -O1 -g -DPTMEM_DEBUG -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_asan := -fsanitize=address,undefined
CFLAGS_ALL := -std=gnu17 $(WARN) $(CFLAGS_$(MODE)) $(CFLAGS)
LDFLAGS_ALL := $(LDFLAGS_$(MODE)) $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2);)

# A file whose name ends in _main.c, and main.c, hold a main(); all else is the library.
SRC := $(wildcard arch/x86_64/*.c src/*.c src/*/*.c)
MAINS := src/main.c src/report/main.c
LIB_SRC := $(filter-out $(MAINS) src/report/% $(wildcard arch/x86_64/blob_*.c),$(SRC))
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o) $(O)/arch/x86_64/pad_blob.o
BLOB_SRC := arch/x86_64/blob_pad.S arch/x86_64/blob_recorder.c
REPORT_OBJ := $(patsubst %.c,$(O)/%.o,$(filter-out $(MAINS),$(wildcard src/report/*.c)))
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(wildcard tests/unit/test_*.c))

LIBS = $(shell pkg-config --libs $(PKGS)) -lZydis -liberty -lz
CAIRO_CPPFLAGS := $(shell pkg-config --cflags cairo)
REPORT_LIBS = $(shell pkg-config --libs cairo) -lm

all: $(O)/ptmem $(O)/ptmem-report
	$(Q)ln -sf $(MODE)/ptmem $(MODE)/ptmem-report build/

$(O)/%.o: %.c
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(O)/src/report/%.o $(O)/tests/unit/%.o: CPPFLAGS_ALL += $(CAIRO_CPPFLAGS)

# The recorder that runs in targets; see scripts/make-blob for what it must not contain.
$(O)/blob.bin: $(BLOB_SRC) arch/x86_64/blob.h arch/x86_64/pad_layout.h arch/pad.h arch/unwind_rule.h scripts/make-blob
	$(call say,BLOB,$@)mkdir -p $(@D) && scripts/make-blob "$(CC)" $@ $(BLOB_SRC)

$(O)/arch/x86_64/pad_blob.o: arch/x86_64/pad_blob.S $(O)/blob.bin
	$(call say,AS,$<)mkdir -p $(@D) && $(CC) -DBLOB_FILE='"$(O)/blob.bin"' -c -o $@ $<

$(O)/libptmem.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/ptmem: $(O)/src/main.o $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS)

$(O)/ptmem-report: $(O)/src/report/main.o $(REPORT_OBJ) $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS)

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(REPORT_OBJ) $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS) -lcmocka

unit: $(UNIT)
	$(Q)set -e; for t in $^; do echo "== $$t"; $$t; done

# The assembler reads the script, which gcc -MMD does not see.
$(O)/src/output/flame.o: src/output/flame.js

clean:
	rm -rf build

.PHONY: all unit clean
.SECONDARY:
-include $(shell find $(O) -name '*.d' 2>/dev/null)
