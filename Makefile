# ptmem: see README.md. Targets: all check quick unit fuzz e2e peers targets cross demo bench install uninstall static layers docs clean.
# Variables: MODE=release|debug|asan  ARCH  CC  V=1  DESTDIR  prefix (or PREFIX)  O=DIRECTORY for objects

MODE ?= release
ARCH ?= $(shell uname -m)
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
prefix ?= $(or $(PREFIX),/usr/local)
# The one place that has it, but for debian/changelog, which must agree.
VERSION := 0.1
, := ,
O := build/$(MODE)

PKGS := libelf libdw libunwind-ptrace libunwind-generic libprotobuf-c
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wno-unused-parameter \
	-Werror=implicit-function-declaration -Werror=int-conversion -Werror=incompatible-pointer-types
CPPFLAGS_ALL := -D_GNU_SOURCE -DPTMEM_VERSION='"$(VERSION)"' -I. -Isrc $(CPPFLAGS)
CFLAGS_release := -O2 -g -fno-tree-slp-vectorize
CFLAGS_debug := -O0 -g3 -DPTMEM_DEBUG -Werror
CFLAGS_asan := -Og -g1 -DPTMEM_DEBUG -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
# All functions are bound at the start: in the child that becomes the program each would be searched again.
LDFLAGS_release := -Wl,-z,now
LDFLAGS_asan := -fsanitize=address,undefined
CFLAGS_ALL := -std=gnu17 -pipe $(WARN) $(CFLAGS_$(MODE)) $(CFLAGS)
LDFLAGS_ALL := $(LDFLAGS_$(MODE)) $(LDFLAGS)

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-5s %s\n' $(1) $(2);)

# A file whose name ends in _main.c, and main.c, hold a main(); all else is the library.
SRC := $(wildcard arch/$(ARCH)/*.c src/*/*.c src/*/*/*.c)
MAINS := src/cli/main.c src/report/main.c src/memusage/main.c src/replay/main.c
LIB_SRC := $(filter-out $(MAINS) src/report/%,$(SRC))
LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o) $(O)/src/recording/pprof_profile.pb-c.o $(patsubst %.S,$(O)/%.o,$(filter-out %_template.S,$(wildcard arch/$(ARCH)/*.S)))
RECORDER_SRC := arch/$(ARCH)/recorder_template.S arch/recorder/recorder_calls.c arch/recorder/recorder_markers.c arch/recorder/recorder_sample.c arch/recorder/recorder_list.c arch/recorder/recorder_labels.c
REPORT_OBJ := $(patsubst %.c,$(O)/%.o,$(filter-out $(MAINS),$(wildcard src/report/*.c src/report/*/*.c)))
# Unit tests of one CPU: of its instructions, its registers, or what only it has. test_aarch64 runs on any.
CPU_TESTS_x86_64 := budget guard insn_skim marker relocate stack_arguments stack_switch static_malloc syscall_callers syscalls
OTHER_CPU_TESTS := $(foreach c,$(filter-out $(ARCH),x86_64),$(CPU_TESTS_$c:%=tests/unit/test_%.c))
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(filter-out $(OTHER_CPU_TESTS),$(wildcard tests/unit/test_*.c)))
FUZZ := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

ARCH_LIBS_x86_64 := -lZydis
# Asked for once, where they are needed.
LIBS = $(eval LIBS := $(shell pkg-config --libs $(PKGS)) $(ARCH_LIBS_$(ARCH)) -liberty -lz -lm)$(LIBS)
CAIRO_CPPFLAGS = $(eval CAIRO_CPPFLAGS := $(shell pkg-config --cflags cairo))$(CAIRO_CPPFLAGS)
REPORT_LIBS = $(eval REPORT_LIBS := $(shell pkg-config --libs cairo) -lm)$(REPORT_LIBS)

all: programs
	$(Q)for p in ptmem ptmem-report ptmem-memusage ptmem-replay; do ln -sfn $(notdir $(O))/$$p build/$$p; done

programs: $(O)/ptmem $(O)/ptmem-report $(O)/ptmem-memusage $(O)/ptmem-replay completions

# What is missing is named once, before the compiler and pkg-config do it in many words.
$(O)/packages: scripts/has-packages
	$(Q)scripts/has-packages "$(CC)" $(PKGS) cairo ncursesw && mkdir -p $(@D) && touch $@

$(O)/%.o: %.c | $(O)/packages
	$(call say,CC,$<)mkdir -p $(@D) && $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP -c -o $@ $<

$(O)/src/report/%.o $(O)/completions/%.o $(O)/tests/unit/%.o: CPPFLAGS_ALL += $(CAIRO_CPPFLAGS)

# Messages of pprof's format, with the code that packs them.
PPROF := $(O)/src/recording/pprof_profile.pb-c
$(PPROF).c: src/recording/pprof_profile.proto | $(O)/packages
	$(call say,PROTO,$@)mkdir -p $(@D) && protoc-c --c_out=$(O) $<
$(PPROF).h: $(PPROF).c ;
$(PPROF).o: $(PPROF).c
	$(call say,CC,$<)$(CC) $(CPPFLAGS_ALL) -I$(O) $(CFLAGS_ALL) -c -o $@ $<
$(O)/src/recording/recording_pprof.o: $(PPROF).h
$(O)/src/recording/recording_pprof.o: CPPFLAGS_ALL += $(shell pkg-config --cflags libprotobuf-c) -I$(O)

# The recorder that runs in targets; see scripts/make-recorder for what it must not contain.
$(O)/recorder.bin: $(RECORDER_SRC) $(wildcard arch/recorder/*.h) $(wildcard arch/$(ARCH)/*.h) arch/pad.h arch/pad_label.h arch/pad_sampling.h arch/pad_virtual.h arch/unwind_rule.h scripts/make-recorder | $(O)/packages
	$(call say,REC,$@)mkdir -p $(@D) && scripts/make-recorder "$(CC)" $(ARCH) $@ $(RECORDER_SRC)

$(O)/arch/$(ARCH)/recorder_image.o: $(O)/recorder.bin
$(O)/%.o: %.S | $(O)/packages
	$(call say,AS,$<)mkdir -p $(@D) && $(CC) -DRECORDER_FILE='"$(O)/recorder.bin"' -DRECORDER_ELF='"$(O)/recorder.bin.elf"' -c -o $@ $<

$(O)/libptmem.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/libreport.a: $(REPORT_OBJ)
	$(call say,AR,$@)rm -f $@ && ar rcs $@ $^

$(O)/ptmem: $(O)/src/cli/main.o $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(shell pkg-config --libs ncursesw)

$(O)/ptmem-report: $(O)/src/report/main.o $(O)/libreport.a $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS)

$(O)/ptmem-memusage: $(O)/src/memusage/main.o $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^

# It must have no allocator of its own, nor libraries that use one: not even a sanitizer's. Allocators find its clock.
$(O)/ptmem-replay: src/replay/main.c src/replay/replay_format.h src/base/types.h | $(O)/packages
	$(call say,LD,$@)$(CC) $(CPPFLAGS_ALL) -std=gnu17 $(WARN) -O2 -g $(CFLAGS) $(LDFLAGS) -pthread -rdynamic -o $@ $< -ldl

# The shells' completions, from the tables of options.
COMPLETIONS := $(addprefix $(O)/completions/,ptmem.bash ptmem.fish ptmem-report.fish _ptmem _ptmem-report)
completions: $(COMPLETIONS)

$(O)/completions/generate: $(O)/completions/generate.o $(O)/libreport.a $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS)

$(COMPLETIONS): $(O)/completions/%: completions/% $(O)/completions/generate
	$(call say,GEN,$@)$(O)/completions/generate <$< >$@.new && mv $@.new $@

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(O)/libreport.a $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS) -lcmocka

# Many programs, each with the whole library: where lld is installed, it takes a third of the time. It would require
# Debian's libunwind to name what its liblzma defines. Tests that read their own code have the layout of ptmem's linker.
READ_THEMSELVES := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(shell grep -lE "proc/self/exe|pad_world\.h" tests/unit/test_*.c))
FAST_LD := $(if $(shell command -v ld.lld),-fuse-ld=lld -Wl$(,)--threads=1$(,)--allow-shlib-undefined)
$(filter-out $(READ_THEMSELVES),$(UNIT)) $(FUZZ): LDFLAGS_ALL += $(FAST_LD)

# The driver is an archive, so that it gives its main() only to programs that have none.
$(O)/tests/fuzz/driver.a: $(O)/tests/fuzz/driver.o
	$(Q)rm -f $@ && ar rcs $@ $^

$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/driver.a $(O)/libreport.a $(O)/libptmem.a
	$(call say,LD,$@)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) $(REPORT_LIBS)

# All programs run even if one fails, the longest ones first; the output of each is kept together.
LONG_UNIT := $(addprefix $(O)/tests/unit/test_,typed_walk pad recording_limit estimate leakcheck struct_layout variables python heap_walk core filter_eval profile_random symbols inspect)
unit: $(UNIT)
	$(Q)printf '%s\n' $(filter $^,$(LONG_UNIT)) $(filter-out $(LONG_UNIT),$^) | xargs -P $$(nproc) -I '{}' \
		sh -c 'said=$$(timeout -k 10 600 {} 2>&1); status=$$?; printf "== %s\n%s\n" {} "$$said"; \
		[ $$status -eq 0 ] || echo "FAIL {}: exit status $$status"; exit $$status'

# RUNS: mutated inputs for the quick ones; the slow ones take a share of it.
RUNS ?= 20000
fuzz: $(FUZZ)
	$(Q)tests/fuzz/run $(O)/tests/fuzz $(RUNS)

# E2E: arguments for the driver (tests/e2e/run --help), names of tests for instance.
e2e: all targets
	$(Q)set -f; BUILD=build tests/e2e/run $(E2E)

# Valgrind is asked for everything that tests/golden/confirmed has digests of, which are made anew; those of tests that are
# skipped here stay. So is ms_print, for tests/golden/ms_print, and memcheck, whose texts tests/golden/memcheck.json.xz has.
peers: all targets
	$(Q)rm -rf build/confirmed build/memcheck && PTMEM_PEERS=ask BUILD=build tests/e2e/run 'peer/*' 'xtree/*' 'leaks/*'
	$(Q)BUILD=build python3 tests/e2e/lib/confirmed.py keep-memcheck
	$(Q)cat build/confirmed/* tests/golden/confirmed | LC_ALL=C sort -s -u -k1,1 >build/confirmed.new && mv build/confirmed.new tests/golden/confirmed
	$(Q)PTMEM_PEERS=ask tests/e2e/report_vs_msprint.sh build/ptmem-report

# The programs that the end-to-end tests run.
targets:
	$(Q)$(MAKE) $(if $(V),,-s) -f tests/targets/Makefile BUILD=build targets

# For another CPU: by the distribution's cross compiler, against the packages that scripts/arm64-sysroot unpacks.
CROSS_ROOT ?= $(CURDIR)/build/arm64-root
CROSS_PKG := PKG_CONFIG_SYSROOT_DIR=$(CROSS_ROOT) PKG_CONFIG_LIBDIR=$(CROSS_ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig:$(CROSS_ROOT)/usr/share/pkgconfig
CROSS_O := build/cross-aarch64
# Unit tests that are built, too, by name: pad.
CROSS_UNIT ?=
cross:
	$(Q)[ "$(ARCH)" = aarch64 ] || { echo "make cross: only ARCH=aarch64 is known" >&2; exit 2; }
	$(Q)$(if $(filter $(CURDIR)/build/%,$(CROSS_ROOT)),scripts/arm64-sysroot $(CROSS_ROOT))
	$(Q)$(CROSS_PKG) $(MAKE) ARCH=aarch64 CC="aarch64-linux-gnu-gcc --sysroot=$(CROSS_ROOT)" O=$(CROSS_O) FAST_LD= \
		$(foreach p,ptmem ptmem-report ptmem-memusage $(CROSS_UNIT:%=tests/unit/test_%),$(CROSS_O)/$p)

layers: programs
	$(Q)scripts/layers $(O)

# DOCS: some of the documents [all], as man/ptmem.1.
docs: programs
	$(Q)scripts/docs $(O)/ptmem $(O)/ptmem-report $(DOCS)

# Unit tests and the faster half of the others, by what they took in a make check.
quick:
	$(Q)$(MAKE) MODE=debug unit
	$(Q)$(MAKE) e2e E2E="-j$$(($$(nproc) + 1)) --quick"

check:
	+$(Q)MAKE='$(MAKE)' scripts/check

demo:
	$(Q)scripts/install-deps build demo
	$(Q)$(MAKE) all
	$(Q)scripts/demo build/ptmem build/ptmem-report build/demo

bench:
	$(Q)scripts/install-deps build test bench
	$(Q)$(MAKE) MODE=release all
	$(Q)scripts/bench $(BENCH)

# Debian has no static Zydis (scripts/package makes one): without it Zydis, libc and libm are shared.
# Debian's static libunwind is not position-independent, so neither is the program.
# STATIC_HTTP: a libmicrohttpd.a without HTTPS (scripts/package makes one); Debian's needs libraries that are not static.
static_library = $(filter /%,$(shell $(CC) -print-file-name=$(1)))
STATIC_LIBS = $(shell pkg-config --static --libs $(PKGS) ncursesw) -liberty -lz -lm
STATIC_ZYDIS = $(call static_library,libZydis.a) $(call static_library,libZycore.a)
STATIC_LINK = $(if $(strip $(STATIC_ZYDIS)),-static $(STATIC_LIBS) $(STATIC_ZYDIS),\
	-no-pie -static-libgcc -Wl$(,)-Bstatic $(filter-out -pthread -lpthread -lm,$(STATIC_LIBS)) -Wl$(,)-Bdynamic -lZydis -lm)

static: $(O)/src/cli/main.o $(O)/libptmem.a
	$(call say,LD,build/ptmem-static)$(CC) $(LDFLAGS_ALL) -o build/ptmem-static $^ \
		$(STATIC_HTTP:%=-Wl,--whole-archive % -Wl,--no-whole-archive) $(STATIC_LINK)
	$(Q)$(if $(strip $(STATIC_ZYDIS)),,echo "build/ptmem-static needs libc and libZydis: no libZydis.a here")

# What is installed: FILE:MODE:PLACE below the prefix.
zsh_dir ?= share/zsh/site-functions
UNIT_FILE := lib/systemd/system/ptmem@.service
INSTALLED = $(foreach p,ptmem ptmem-report ptmem-memusage,$(O)/$p:755:bin/$p man/$p.1:644:share/man/man1/$p.1) \
	$(foreach p,ptmem ptmem-report,$(O)/completions/ptmem.bash:644:share/bash-completion/completions/$p \
	$(O)/completions/_$p:644:$(zsh_dir)/_$p $(O)/completions/$p.fish:644:share/fish/vendor_completions.d/$p.fish) \
	$(O)/ptmem-replay:755:libexec/ptmem/ptmem-replay man/ptmem-inspect.1:644:share/man/man1/ptmem-inspect.1 \
	$(foreach f,README.md INSTALL.md NEWS SECURITY.md CONTRIBUTING.md DEBUGGING.md LICENSE $(wildcard doc/*),$f:644:share/doc/ptmem/$f) \
	contrib/ptmem@.service:644:$(UNIT_FILE) include/ptmem.h:644:include/ptmem.h \
	src/graph/containers.txt:644:share/ptmem/containers.txt contrib/ptmem-config.cmake:644:lib/cmake/ptmem/ptmem-config.cmake contrib/pytest_ptmem.py:644:share/ptmem/pytest_ptmem.py
INSTALL_TO = $(DESTDIR)$(prefix)
for_installed = set -e; for i in $(INSTALLED); do (IFS=:; set -- $$i; $(1)); done

install: programs
	$(Q)$(call for_installed,install -D -m $$2 $$1 "$(INSTALL_TO)/$$3")
	$(Q)sed -i 's,=/usr/bin/ptmem,=$(prefix)/bin/ptmem,' "$(INSTALL_TO)/$(UNIT_FILE)"

# Directories that become empty are removed, too, but not the prefix.
uninstall:
	$(Q)$(call for_installed,rm -f "$(INSTALL_TO)/$$3")
	$(Q)$(call for_installed,d=$$(dirname $$3); [ ! -d "$(INSTALL_TO)/$$d" ] || \
		{ cd "$(INSTALL_TO)"; rmdir -p --ignore-fail-on-non-empty $$d; })

# The assembler reads these, which gcc -MMD does not see.
$(O)/src/output/flame.o: src/output/shorten.js src/output/flame.js
$(O)/src/graph/containers.o: src/graph/containers.txt
$(O)/src/output/html_page.o: src/output/shorten.js $(wildcard src/output/html/*)

clean:
	rm -rf build

.PHONY: all cross programs completions quick unit fuzz e2e peers targets layers docs check demo bench static install uninstall clean
.SECONDARY:
-include $(shell find $(O) -type f -name '*.d' 2>/dev/null)
