/*
 * Names and places in programs that are compiled here with every kind of debug
 * information: labels in the sources mark the addresses to look up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/elf_file.h"
#include "base/frame_key.h"
#include "symbols/debug_info.h"
#include "symbols/string_pool.h"
#include "symbols/symbols.h"
#include "symbols/symtab.h"

#define BIAS 0x7f0000000000

static char dir[] = "/tmp/ptmem-symbols-XXXXXX";

/* One object, opened for look-ups. */
struct fixture {
	struct symbols *symbols;
	struct module module;
};

static void write_file(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	free(path);
}

/* Runs shell commands in the test's directory; false if one fails. */
static bool run(const char *commands)
{
	char *line = xasprintf("cd %s && unset CFLAGS LD_PRELOAD && %s", dir, commands);
	bool ok = system(line) == 0;
	free(line);
	return ok;
}

static void open_object(struct fixture *x, const char *name, const struct symbols_options *options)
{
	*x = (struct fixture){.module = {.id = 1, .users = 1, .bias = BIAS}};
	x->module.path = xasprintf("%s/%s", dir, name);
	assert_int_equal(elf_file_open(NULL, x->module.path, NULL, &x->module.file), 0);
	x->symbols = symbols_new(options);
}

static void close_object(struct fixture *x)
{
	symbols_free(x->symbols);
	elf_file_release(x->module.file);
	free(x->module.path);
}

struct label {
	const char *name;
	uint64_t vaddr;
};

static int match_label(void *ctx, const struct elf_symbol *sym)
{
	struct label *l = ctx;
	if (strcmp(sym->name, l->name) != 0)
		return 0;
	l->vaddr = sym->vaddr;
	return 1;
}

static uint64_t label_vaddr(struct elf_file *file, const char *name)
{
	struct label l = {.name = name};
	if (elf_file_each_symbol(file, match_label, &l) != 1)
		fail_msg("%s: no label %s", file->path, name);
	return l.vaddr;
}

static const struct symbol *find_part(struct fixture *x, const char *name, enum symbol_part part)
{
	return symbols_find(x->symbols, &x->module, BIAS + label_vaddr(x->module.file, name), part);
}

static const struct symbol *find_label(struct fixture *x, const char *name)
{
	return find_part(x, name, SYMBOL_ALL);
}

/* Compares @sym with "name (file:line) < name (file:line) ..."; "?" = unknown. */
static void check_symbol(const char *what, const struct symbol *sym, const char *expected)
{
	char text[4096] = "";
	for (uint32_t i = 0; i < sym->count; i++) {
		const struct symbol_frame *f = &sym->frame[i];
		size_t used = strlen(text);
		snprintf(text + used, sizeof(text) - used, "%s%s (%s:%u)", i ? " < " : "",
			 f->name ? f->name : "?", f->file ? f->file : "?", f->line);
	}
	if (strcmp(text, expected) != 0)
		fail_msg("%s:\n%s\nnot\n%s", what, text, expected);
}

static const char inline_source[] =
	"#define LABEL(name) __asm__ volatile(\".globl \" #name \"\\n\" #name \":\")\n"
	"volatile int sink;\n"
	"namespace space {\n"
	"template <typename T> struct holder {\n"
	"	__attribute__((always_inline)) static inline void inner(T t)\n"
	"	{\n"
	"		sink = t + 1; LABEL(at_inner); sink = t + 2;\n" /* 7 */
	"	}\n"
	"};\n"
	"static inline __attribute__((always_inline)) void middle(int i)\n"
	"{\n"
	"	sink = i;\n"
	"	holder<int>::inner(i);\n" /* 13 */
	"}\n"
	"__attribute__((noinline)) void outer(int i)\n"
	"{\n"
	"	sink = i + 5; LABEL(at_outer); sink = 3;\n" /* 17 */
	"	middle(i);\n" /* 18 */
	"	sink = i + 7;\n"
	"}\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	space::outer(argc); sink = 1; LABEL(at_main); sink = 2;\n" /* 24 */
	"	return 0;\n"
	"}\n";

#define AT_OUTER " < space::outer(int) (a.cc:18)"
#define AT_INNER "space::holder<int>::inner(int) (a.cc:7) < space::middle (a.cc:13)" AT_OUTER

/* GCC gives local functions no mangled name, so their parameters are not known. */
static const char *at_inner(const char *build)
{
	if (strstr(build, "-gline-tables-only"))
		return "inner (a.cc:7) < middle (a.cc:13)" AT_OUTER;
	if (!strncmp(build, "clang", 5))
		return "space::holder<int>::inner(int) (a.cc:7) < space::middle(int) (a.cc:13)" AT_OUTER;
	return AT_INNER;
}

/* Each with the name of its compiler, for a skip where that is not installed. */
static const char *const builds[] = {
	"g++ -g -O0", "g++ -g -O2", "g++ -gdwarf-4 -O2", "g++ -gdwarf-5 -O2", "g++ -g -O2 -gz",
	"g++ -g -O2 -no-pie", "g++ -g -O2 -static", "g++ -g -O2 -gsplit-dwarf",
	"g++ -gdwarf-4 -O2 -gsplit-dwarf", "g++ -g -O2 -ffunction-sections -Wl,--gc-sections",
	"clang++ -g -O0", "clang++ -g -O2", "clang++ -gdwarf-4 -O2", "clang++ -gdwarf-5 -O2",
	"clang++ -gline-tables-only -O2", "clang++ -g -O2 -gsplit-dwarf",
};

static void check_build(const char *build)
{
	struct fixture x;
	char *command = xasprintf("%s a.cc -o a", build);
	if (!run(command))
		fail_msg("%s", command);
	free(command);
	open_object(&x, "a", &(struct symbols_options){0});
	check_symbol(build, find_part(&x, "at_inner", SYMBOL_REAL), "space::outer(int) (?:0)");
	check_symbol(build, find_label(&x, "at_inner"), at_inner(build));
	check_symbol(build, find_part(&x, "at_inner", SYMBOL_REAL), at_inner(build)); /* no less is known now */
	assert_true(find_part(&x, "at_main", SYMBOL_REAL)->is_main);
	check_symbol(build, find_label(&x, "at_outer"), "space::outer(int) (a.cc:17)");
	check_symbol(build, find_label(&x, "at_main"), "main (a.cc:24)");
	const struct symbol *sym = find_label(&x, "at_main");
	assert_true(sym->is_main && !sym->is_below_main);
	assert_string_equal(sym->object, x.module.path);
	assert_string_equal(sym->frame[0].dir, dir);
	close_object(&x);
}

static void test_builds(void **state)
{
	bool has_clang = system("clang++ --version >/dev/null 2>&1") == 0;
	if (!has_clang)
		print_message("clang++ is not installed: only g++ is tested\n");
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		if (has_clang || strncmp(builds[i], "clang", 5) != 0)
			check_build(builds[i]);
	}
}

static void test_options(void **state)
{
	struct fixture x;
	assert_true(run("g++ -g -O2 a.cc -o a"));
	open_object(&x, "a", &(struct symbols_options){.no_inline = true, .no_demangle = true});
	check_symbol("plain", find_label(&x, "at_inner"), "_ZN5space5outerEi (a.cc:7)");
	check_symbol("plain", find_part(&x, "at_outer", SYMBOL_REAL), "_ZN5space5outerEi (?:0)");
	for (int part = SYMBOL_REAL; part >= SYMBOL_ALL; part--) {
		const struct symbol *start = find_part(&x, "_start", (enum symbol_part)part);
		assert_string_equal(start->frame[start->count - 1].name, "(below main)");
		assert_true(start->is_below_main && !start->is_main);
	}
	close_object(&x);
	open_object(&x, "a", &(struct symbols_options){.show_below_main = true});
	const struct symbol *sym = find_label(&x, "_start");
	assert_string_equal(sym->frame[sym->count - 1].name, "_start");
	assert_true(sym->is_below_main);
	close_object(&x);
}

/* Overlaps, gaps, symbols without size or type: every row checked with Valgrind 3.19. */
static const char assembler_source[] =
	".text\n.globl main\n.type main,@function\nmain: nop\n.size main,.-main\n"
	".type nosize,@function\nnosize: nop\nl_nosize: nop\n"
	"notype: nop\nl_notype: nop\n.size notype,.-notype\n"
	".type outer,@function\nouter: nop\nl_outer: nop\n"
	".type inner,@function\ninner: nop\nl_inner: nop\n.size inner,.-inner\n"
	"nop\nl_tail: nop\n.size outer,.-outer\n"
	".type longer,@function\n.type short,@function\nlonger:\nshort: nop\nl_short: nop\n"
	".size short,.-short\nnop\nl_longer: nop\n.size longer,.-longer\n"
	".type same_b,@function\n.type same_a,@function\n.type same_long,@function\n"
	"same_long:\nsame_b:\nsame_a: nop\nl_same: nop\n"
	".size same_a,.-same_a\n.size same_b,.-same_b\n.size same_long,.-same_long\n"
	"nop\nl_gap: nop\n"
	".section .note.GNU-stack,\"\",@progbits\n";

static void test_symbol_table(void **state)
{
	static const struct { const char *label, *expected; } rows[] = {
		{"main", "main (?:0)"}, {"l_nosize", "? (?:0)"}, {"l_notype", "? (?:0)"},
		{"l_outer", "outer (?:0)"}, {"l_inner", "inner (?:0)"}, {"l_tail", "? (?:0)"},
		{"l_short", "short (?:0)"}, {"l_longer", "longer (?:0)"}, {"l_same", "same_a (?:0)"},
		{"l_gap", "? (?:0)"},
	};
	struct fixture x;
	write_file("s.s", assembler_source);
	assert_true(run("gcc s.s -o s"));
	open_object(&x, "s", &(struct symbols_options){0});
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_symbol(rows[i].label, find_label(&x, rows[i].label), rows[i].expected);
	close_object(&x);
}

static void test_better_name(void **state)
{
	assert_true(symtab_is_better_name("mmap", "__mmap"));
	assert_false(symtab_is_better_name("__mmap", "mmap"));
	assert_true(symtab_is_better_name("pthread_create@@GLIBC_2.34", "pthread_create"));
	assert_true(symtab_is_better_name("pthread_create@@GLIBC_2.34", "__pthread_create_2_1"));
	assert_true(symtab_is_better_name("f@A", "f@B"));
	assert_true(symtab_is_better_name("fa", "fb"));
	assert_false(symtab_is_better_name("f", "f"));
}

/* A stripped library: exported functions have names, others none. */
static void test_stripped(void **state)
{
	struct fixture x;
	write_file("l.c", "static __attribute__((noinline)) int hidden(int i) { __asm__(\"\"); return i; }\n"
			  "int shown(int i) { return hidden(i) + 1; }\n"
			  "int (*hidden_place)(int) = hidden;\n");
	assert_true(run("gcc -O1 -shared -fPIC l.c -o whole.so && strip -o l.so whole.so"));
	open_object(&x, "whole.so", &(struct symbols_options){0});
	uint64_t hidden = label_vaddr(x.module.file, "hidden");
	close_object(&x);
	open_object(&x, "l.so", &(struct symbols_options){.debug_dirs = ""});
	check_symbol("shown", find_label(&x, "shown"), "shown (?:0)");
	check_symbol("hidden", symbols_find(x.symbols, &x.module, BIAS + hidden, SYMBOL_REAL), "? (?:0)");
	check_symbol("hidden", symbols_find(x.symbols, &x.module, BIAS + hidden, SYMBOL_ALL), "? (?:0)");
	close_object(&x);
}

/* Splits a into a and its debug file, asks for the labels; @expected at at_inner. */
static void check_split(const char *commands, const char *roots, const char *expected)
{
	struct fixture x;
	assert_true(run("rm -rf a.debug .debug root; g++ -g -O2 -Wl,--build-id a.cc -o a"));
	open_object(&x, "a", &(struct symbols_options){0});
	uint64_t vaddr = label_vaddr(x.module.file, "at_inner");
	close_object(&x);
	assert_true(run("objcopy --only-keep-debug a a.debug && objcopy --strip-all a"));
	if (!run(commands))
		fail_msg("%s", commands);
	char *dirs = roots ? xasprintf("/nowhere::%s/%s", dir, roots) : NULL;
	open_object(&x, "a", &(struct symbols_options){.debug_dirs = dirs});
	check_symbol(commands, symbols_find(x.symbols, &x.module, BIAS + vaddr, SYMBOL_ALL), expected);
	close_object(&x);
	free(dirs);
}

#define ADD_LINK "objcopy --add-gnu-debuglink=a.debug a"
#define BUILD_ID "id=$(readelf -n a | sed -n 's/.*Build ID: //p') && xx=$(echo $id | cut -c1-2) && "
#define INTO_ROOT "mkdir -p root/.build-id/$xx && mv a.debug root/.build-id/$xx/${id#??}.debug"
#define NO_ID "objcopy --remove-section=.note.gnu.build-id a && "

static void test_debug_files(void **state)
{
	check_split("true", NULL, "? (?:0)"); /* a.debug exists, but nothing refers to it */
	check_split(ADD_LINK, NULL, AT_INNER);
	check_split(NO_ID ADD_LINK, NULL, AT_INNER);
	check_split(NO_ID ADD_LINK " && mkdir .debug && mv a.debug .debug", NULL, AT_INNER);
	check_split(NO_ID ADD_LINK " && mkdir -p root$PWD && mv a.debug root$PWD", "root", AT_INNER);
	check_split(NO_ID ADD_LINK " && echo >> a.debug", NULL, "? (?:0)"); /* wrong checksum */
	check_split(NO_ID ADD_LINK " && rm a.debug && mkfifo a.debug", NULL, "? (?:0)");
	check_split(BUILD_ID INTO_ROOT, "root", AT_INNER);
	check_split(BUILD_ID INTO_ROOT, NULL, "? (?:0)");
	/* another program's file under our build-id */
	check_split(BUILD_ID "g++ -g -O2 -Wl,--build-id=0x12345678 a.cc -o other && objcopy --only-keep-debug other a.debug && "
			    INTO_ROOT,
		    "root", "? (?:0)");
}

static void test_dwz(void **state)
{
	struct fixture x;
	if (system("dwz --version >/dev/null 2>&1") != 0) {
		print_message("dwz is not installed\n");
		skip();
	}
	assert_true(run("g++ -g -O2 a.cc -o a && cp a b && dwz -m common.dwz a b"));
	open_object(&x, "a", &(struct symbols_options){0});
	check_symbol("dwz, beside it", find_label(&x, "at_inner"), AT_INNER);
	close_object(&x);
	/* the common file is known by its build-id only */
	assert_true(run("rm -rf root && g++ -g -O2 a.cc -o a && cp a b && "
			"dwz -m a.debug -M /nowhere/a.debug a b && "
			"id=$(readelf -n a.debug | sed -n 's/.*Build ID: //p') && "
			"xx=$(echo $id | cut -c1-2) && " INTO_ROOT));
	char *root = xasprintf("%s/root", dir);
	open_object(&x, "a", &(struct symbols_options){.debug_dirs = root});
	check_symbol("dwz, by build-id", find_label(&x, "at_inner"), AT_INNER);
	close_object(&x);
	free(root);
}

static void test_vdso(void **state)
{
	unsigned long base = getauxval(AT_SYSINFO_EHDR);
	if (!base)
		skip(); /* no vdso on this machine */
	size_t size = 2 * 4096;
	struct fixture x = {.module = {.id = 9, .bias = BIAS, .is_vdso = true}};
	x.module.path = xstrdup("[vdso]");
	uint8_t *image = xmemdup((const void *)base, size);
	assert_int_equal(elf_file_open_memory(image, size, "[vdso]", &x.module.file), 0);
	x.symbols = symbols_new(&(struct symbols_options){0});
	const struct symbol *sym = find_label(&x, "__vdso_clock_gettime");
	check_symbol("vdso", sym, "clock_gettime (?:0)");
	assert_string_equal(sym->object, "[vdso]");
	close_object(&x);
}

static void test_no_module(void **state)
{
	struct symbols *s = symbols_new(&(struct symbols_options){0});
	struct module unreadable = {.id = 3, .path = (char *)"/gone"};
	const struct symbol *sym = symbols_find(s, NULL, 0x1234, SYMBOL_ALL);
	check_symbol("outside", sym, "? (?:0)");
	assert_null(sym->object);
	assert_ptr_equal(sym, symbols_find(s, NULL, 0x1234, SYMBOL_ALL));
	sym = symbols_find(s, &unreadable, 0x1234, SYMBOL_ALL);
	check_symbol("unreadable", sym, "? (?:0)");
	assert_string_equal(sym->object, "/gone");
	symbols_free(s);
}

static void test_define(void **state)
{
	struct symbols *s = symbols_new(&(struct symbols_options){0});
	struct module m = {.id = 5, .path = (char *)"/x"};
	char name[] = "f", file[] = "f.c";
	struct symbol_frame frames[] = {{.name = name, .file = file, .line = 3}, {.name = "main"}};
	struct symbol by_hand = {.object = "/x", .frame = frames, .count = 2, .is_main = true};
	symbols_define(s, 5, 0x10, &by_hand);
	name[0] = file[0] = '!'; /* everything is copied */
	const struct symbol *sym = symbols_find(s, &m, 0x10, SYMBOL_ALL);
	check_symbol("defined", sym, "f (f.c:3) < main (?:0)");
	assert_ptr_equal(sym, symbols_find(s, &m, 0x10, SYMBOL_REAL));
	assert_string_equal(sym->object, "/x");
	assert_true(sym->is_main);
	check_symbol("beside", symbols_find(s, &m, 0x11, SYMBOL_ALL), "? (?:0)");
	check_symbol("other module", symbols_find(s, NULL, 0x10, SYMBOL_ALL), "? (?:0)");
	symbols_free(s);
}

/* Functions without an object: one key for each set of names, and names for each key. */
static void test_names(void **state)
{
	struct symbols *s = symbols_new(&(struct symbols_options){0});
	struct symbol_frame f = {.name = "f", .file = "a.py", .dir = "/src", .line = 3};
	const struct symbol sym = {.frame = &f, .count = 1};
	uint64_t key[5];

	key[0] = symbols_name(s, &sym);
	f.line = 4;
	key[1] = symbols_name(s, &sym);
	f.dir = NULL;
	key[2] = symbols_name(s, &sym);
	f.file = NULL;
	key[3] = symbols_name(s, &sym);
	/* another name has the key that this one would have */
	f.name = "g";
	struct symbols *other = symbols_new(&(struct symbols_options){0});
	uint64_t wanted = symbols_name(other, &sym);
	const struct symbol taken = {.frame = &(struct symbol_frame){.name = "taken"}, .count = 1};

	symbols_define(s, 0, wanted, &taken);
	key[4] = symbols_name(s, &sym);
	assert_int_equal(key[4], wanted + 1);
	assert_int_equal(symbols_name(s, &sym), key[4]);
	check_symbol("taken", symbols_named(s, wanted), "taken (?:0)");
	check_symbol("0", symbols_named(s, key[0]), "f (a.py:3)");
	check_symbol("1", symbols_named(s, key[1]), "f (a.py:4)");
	check_symbol("4", symbols_named(s, key[4]), "g (?:4)");
	for (int i = 0; i < 5; i++) {
		assert_int_equal(frame_key_kind(key[i]), FRAME_NAMED);
		for (int j = 0; j < i; j++)
			assert_int_not_equal(key[i], key[j]);
	}
	check_symbol("unknown", symbols_named(s, FRAME_NAMED_BASE), "? (?:0)");
	symbols_free(other);
	symbols_free(s);
}

/* Results of both kinds keep their addresses while thousands are added. */
static void test_results_stay(void **state)
{
	struct symbols *s = symbols_new(&(struct symbols_options){0});
	struct fixture x;
	assert_true(run("g++ -g -O2 a.cc -o a"));
	open_object(&x, "a", &(struct symbols_options){0});
	const struct symbol *first = symbols_find(s, NULL, 1, SYMBOL_ALL), *real = find_part(&x, "at_inner", SYMBOL_REAL);
	for (taddr_t pc = 0; pc < 5000; pc++) {
		symbols_find(s, NULL, pc << 12, SYMBOL_ALL);
		symbols_find(x.symbols, NULL, pc << 12, SYMBOL_REAL);
	}
	assert_ptr_equal(first, symbols_find(s, NULL, 1, SYMBOL_ALL));
	assert_int_equal(first->count, 1);
	symbols_free(s);
	assert_ptr_equal(real, find_part(&x, "at_inner", SYMBOL_REAL));
	find_label(&x, "at_inner");
	check_symbol("still there", real, "space::outer(int) (?:0)");
	close_object(&x);
}

/* Compared with a linear search, with ranges that nest, touch, repeat and overlap. */
static void test_ranges(void **state)
{
	struct ranges r = {0};
	unsigned seed = 7;
	for (uint32_t i = 0; i < 300; i++) {
		uint64_t lo = rand_r(&seed) % 1000;
		ranges_add(&r, lo, lo + rand_r(&seed) % (i % 3 ? 20 : 300), i);
	}
	ranges_sort(&r);
	for (uint64_t addr = 0; addr < 1400; addr++) {
		size_t expected = 0, found = 0;
		for (size_t i = 0; i < r.count; i++)
			expected += r.data[i].lo <= addr && addr < r.data[i].hi;
		const struct range *previous = NULL;
		for (const struct range *x = ranges_find(&r, addr); x; x = ranges_outer(&r, x, addr)) {
			assert_true(x->lo <= addr && addr < x->hi);
			assert_true(!previous || x->lo <= previous->lo);
			previous = x;
			found++;
		}
		assert_int_equal(found, expected);
	}
	ranges_deinit(&r);
}

static void test_string_pool(void **state)
{
	struct string_pool p = {0};
	char text[32];
	const char *first = string_pool_add(&p, "n0");
	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "n%d", i);
		assert_string_equal(string_pool_add(&p, text), text);
	}
	assert_int_equal(p.strings.index.count, 1000);
	assert_ptr_equal(string_pool_add(&p, "n0"), first);
	assert_ptr_equal(string_pool_add_n(&p, "n0xx", 2), first);
	assert_string_equal(string_pool_add(&p, ""), "");
	assert_null(string_pool_add(&p, NULL));
	string_pool_deinit(&p);
}

static int make_directory(void **state)
{
	if (!mkdtemp(dir))
		return -1;
	write_file("a.cc", inline_source);
	return 0;
}

static int remove_directory(void **state)
{
	char *command = xasprintf("rm -rf %s", dir);
	int rc = system(command);
	free(command);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_builds),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_symbol_table),
		cmocka_unit_test(test_better_name),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_debug_files),
		cmocka_unit_test(test_dwz),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_no_module),
		cmocka_unit_test(test_define),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_results_stay),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_string_pool),
	};
	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
