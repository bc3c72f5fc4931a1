#include "symbols/code_owner.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/shell_words.h"
#include "base/text.h"
#include "base/types.h"

void my_code_add(struct my_code *m, const char *rule)
{
	if ((*rule == '+' || *rule == '-') && rule[1])
		*vec_add(&m->rule) = xstrdup(rule);
}

static bool add_pattern(char sign, const char *pattern, struct my_code *m)
{
	if (*pattern)
		*vec_add(&m->rule) = xasprintf("%c%s", sign, pattern);
	return *pattern;
}

bool my_code_include(const char *pattern, void *my_code)
{
	return add_pattern('+', pattern, my_code);
}

bool my_code_exclude(const char *pattern, void *my_code)
{
	return add_pattern('-', pattern, my_code);
}

void my_code_deinit(struct my_code *m)
{
	vec_release(&m->rule, e, free(*e));
}

static bool matches(const char *pattern, const char *path)
{
	if (!path || !*path)
		return false;
	return wildcard_matches(pattern, strlen(pattern),
				strchr(pattern, '/') ? path : text_base_name(path));
}

enum my_code_owner my_code_find(const struct my_code *m, const char *source, const char *object)
{
	for (size_t i = m ? m->rule.count : 0; i-- > 0;) {
		const char *rule = m->rule.data[i];

		if (matches(rule + 1, source) || matches(rule + 1, object))
			return *rule == '+' ? MY_CODE_MINE : MY_CODE_NOT_MINE;
	}
	return MY_CODE_UNKNOWN;
}

static bool begins_with_any(const char *s, const char *const *prefix, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (text_begins_with(s, prefix[i]))
			return true;
	}
	return false;
}

static bool is_any(const char *s, size_t size, const char *const *name, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(name[i]) == size && strncmp(s, name[i], size) == 0)
			return true;
	}
	return false;
}

/* -- by object -- */

/* Whether @path is a shared object whose base name is @name up to "." or "-". */
static bool is_object(const char *path, const char *name)
{
	const char *base = text_base_name(path);
	size_t n = strlen(name);

	return strstr(base, ".so") && strncmp(base, name, n) == 0 &&
	       (base[n] == '.' || base[n] == '-');
}

static bool is_any_object(const char *path, const char *const *name, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (is_object(path, name[i]))
			return true;
	}
	return false;
}

/*
 * HotSpot and the native parts of the class library, which have no version in their names: libzip
 * is another library, too.
 */
static bool is_java_object(const char *path)
{
	static const char *const names[] = {"libjvm.so", "libjli.so", "libjava.so", "libjimage.so",
					    "libnio.so", "libnet.so", "libzip.so",
					    "libinstrument.so", "libmanagement.so"};
	const char *base = text_base_name(path);

	return is_any(base, strlen(base), names, ARRAY_SIZE(names));
}

/* Node, and its own scripts: node:events, node:internal/timers. */
static bool is_node_object(const char *path)
{
	const char *base = text_base_name(path);

	return strcmp(base, "node") == 0 || strcmp(base, "nodejs") == 0 ||
	       text_begins_with(base, "libnode.so") || text_begins_with(path, "node:");
}

const char *standard_malloc(const char *path)
{
	static const struct {
		const char *library, *allocator; /* how the name of its file begins; its name */
	} known[] = {
		{"libjemalloc", "jemalloc"}, {"libtcmalloc", "tcmalloc"},
		{"libmimalloc", "mimalloc"},
	};
	const char *base = text_base_name(path);

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (text_begins_with(base, known[i].library) && strstr(base, ".so"))
			return known[i].allocator;
	return NULL;
}

static enum standard_library library_of_object(const char *path)
{
	static const char *const c[] = {"libc", "libpthread"};
	static const char *const loader[] = {"ld-linux", "ld", "ld-musl"};
	static const char *const cxx[] = {"libstdc++",  "libc++",       "libc++abi",
					  "libsupc++",  "libgcc_s",     "libstd",
					  "libgnat",    "libgnarl",     "libgfortran",
					  "libgphobos", "libgdruntime", "libphobos2",
					  "libphobos2-ldc-shared", "libdruntime-ldc-shared"};

	if (is_any_object(path, c, ARRAY_SIZE(c)))
		return STANDARD_C;
	if (is_any_object(path, loader, ARRAY_SIZE(loader)))
		return STANDARD_LOADER;
	if (standard_malloc(path))
		return STANDARD_MALLOC;
	if (is_java_object(path))
		return STANDARD_JAVA;
	if (is_node_object(path))
		return STANDARD_NODE;
	if (text_begins_with(path, INTERPRETER_FILE))
		return STANDARD_PACKAGE;
	return is_any_object(path, cxx, ARRAY_SIZE(cxx)) ? STANDARD_CXX_RUST : STANDARD_NONE;
}

bool standard_is_library(const char *object)
{
	return object && library_of_object(object) != STANDARD_NONE;
}

/* -- by source file -- */

enum source { SOURCE_UNKNOWN, SOURCE_USER, SOURCE_TOOLCHAIN, SOURCE_PACKAGE };

static bool contains_any(const char *s, const char *const *part, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strstr(s, part[i]))
			return true;
	}
	return false;
}

/*
 * Debian has Rust's library in /usr/src/rustc-VERSION; Go downloads toolchains as modules. libc++
 * is part of some programs.
 */
static bool is_toolchain_directory(const char *dir)
{
	static const char *const begins[] = {"/rustc/", "/rust/deps/", "/usr/src/rustc-",
					     "/usr/lib/go-", "/usr/share/go-", "/usr/local/go/"};
	static const char *const parts[] = {
		"/include/c++/", "/libstdc++-v3/", "/libc++/", "/libcxx/", "/libcxxabi/",
		"/rustlib/src/", "/golang.org/toolchain@", "/libraries/base/",
		"/libraries/ghc-prim/", "/libraries/ghc-internal/", "/lib/gcc/", "/lib/clang/",
	};

	return begins_with_any(dir, begins, ARRAY_SIZE(begins)) ||
	       contains_any(dir, parts, ARRAY_SIZE(parts));
}

/* Go's runtime, wherever Go is installed. */
static bool is_go_runtime(const char *dir, const char *file)
{
	const char *end = strrchr(file, '.');

	return strstr(dir, "/src/runtime") && end && (!strcmp(end, ".go") || !strcmp(end, ".s"));
}

/* Programs are built in /usr/src, too: by distributions and in containers. */
static bool is_package_directory(const char *dir)
{
	static const char *const begins[] = {"/usr/", "/nix/store/", "/gnu/store/"};
	static const char *const built[] = {"/usr/src/", "/usr/local/src/"};

	return begins_with_any(dir, begins, ARRAY_SIZE(begins)) &&
	       !begins_with_any(dir, built, ARRAY_SIZE(built));
}

/* glibc and musl in a static program: their functions are known by name. */
static bool is_libc_directory(const char *dir)
{
	static const char *const parts[] = {"/glibc", "/eglibc", "/musl"};

	return contains_any(dir, parts, ARRAY_SIZE(parts));
}

/* What tells the directory: that itself, or a path that begins with it; NULL = unknown. */
static const char *directory_of(const struct frame_text *frame)
{
	const char *dir = frame->dir ? frame->dir : frame->file;

	return frame->file && dir && *dir == '/' ? dir : NULL;
}

bool standard_has_path(const struct frame_text *frame)
{
	return directory_of(frame);
}

static enum source find_source(const struct frame_text *frame)
{
	const char *dir = directory_of(frame);

	if (!dir || is_libc_directory(dir))
		return SOURCE_UNKNOWN;
	if (is_toolchain_directory(dir) || is_go_runtime(dir, frame->file))
		return SOURCE_TOOLCHAIN;
	return is_package_directory(dir) ? SOURCE_PACKAGE : SOURCE_USER;
}

static enum my_code_owner find_owner(const struct frame_text *frame)
{
	_cleanup_free_ char *path = NULL;

	if (!frame->my_code || !frame->my_code->rule.count)
		return MY_CODE_UNKNOWN;
	if (frame->file && frame->dir && *frame->file != '/')
		path = xasprintf("%s/%s", frame->dir, frame->file);
	return my_code_find(frame->my_code, path ? path : frame->file, frame->object);
}

/* -- C++ and Rust by name -- */

/*
 * The start of the qualified name in "int* std::f<A, B>(C)": after the last space outside of
 * brackets and before the parameters. "operator new(...)" keeps its space.
 */
const char *standard_qualified_name(const char *function)
{
	const char *begin = function;
	int depth = 0;
	for (const char *s = function; *s; s++) {
		if (strncmp(s, "operator", 8) == 0 || strncmp(s, "{lambda", 7) == 0)
			return begin;
		depth += (*s == '<') - (*s == '>' && s > function && s[-1] != '-');
		if (depth == 0 && *s == '(' && s > function && strncmp(s, "(anonymous", 10) != 0)
			return begin;
		if (depth == 0 && *s == ' ')
			begin = s + 1;
	}
	return begin;
}

static bool is_of_standard_namespace(const char *name)
{
	static const char *const prefixes[] = {
		"std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete",
		"alloc::", "core::", "hashbrown::", "__rust_", "__rustc", "__rg_", "__rdl_",
	};
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	}
	return false;
}

/* The trait of the "<TYPE as TRAIT>" that @name begins with; NULL if there is none. */
static const char *rust_trait(const char *name)
{
	int depth = 0;
	for (const char *s = name; *s; s++) {
		depth += (*s == '<') - (*s == '>' && s[-1] != '-');
		if (depth == 0)
			return NULL;
		if (depth == 1 && strncmp(s, " as ", 4) == 0)
			return s + 4;
	}
	return NULL;
}

/* Only the standard library can add methods to these: "<str>::repeat", "<[u8]>::concat". */
static bool is_builtin_type(const char *type)
{
	static const char *const names[] = {
		"str", "bool", "char", "u8", "u16", "u32", "u64", "u128", "usize",
		"i8", "i16", "i32", "i64", "i128", "isize", "f32", "f64",
	};

	return *type == '[' || *type == '*' ||
	       is_any(type, strcspn(type, ">"), names, ARRAY_SIZE(names));
}

/*
 * Rust methods, "<TYPE as TRAIT>::f" or "<TYPE>::f". A method of a standard type is standard. For a
 * type without a path ("u8", "&T", "[T]") the trait decides. A program's own type that implements a
 * standard trait has its own code there.
 */
static bool is_of_standard_impl(const char *name)
{
	if (*name != '<')
		return false;
	const char *type = name + 1, *trait = rust_trait(name);
	if (is_of_standard_namespace(type))
		return true;
	if (!trait)
		return is_builtin_type(type);
	if (!is_of_standard_namespace(trait))
		return false;
	for (const char *s = type; s < trait; s++) {
		bool begins = s == type || strchr("<>[]()&* ,;", s[-1]);
		if (begins && !is_of_standard_namespace(s)) {
			size_t n = strcspn(s, "<>[]()&* ,;:");
			if (n > 0 && strncmp(s + n, "::", 2) == 0)
				return false;
		}
	}
	return true;
}

bool standard_is_namespace(const char *function)
{
	const char *name = standard_qualified_name(function);
	return is_of_standard_namespace(name) || is_of_standard_impl(name);
}

/* libstdc++'s has no namespace in its symbol. */
bool standard_is_thread_start(const char *function)
{
	static const char cxx[] = "execute_native_thread_routine";
	const char *name = standard_qualified_name(function);

	if (text_begins_with(name, "std::") && text_begins_with(name + strlen("std::"), cxx))
		name += strlen("std::");
	if (text_begins_with(name, cxx))
		return !name[strlen(cxx)] || strchr("(_.", name[strlen(cxx)]);
	return standard_is_namespace(name) &&
	       (strstr(name, "::thread_start") || strstr(name, "::__thread_proxy"));
}

/* Headers of libstdc++, for functions that Valgrind reports without their namespace. */
static bool is_cxx_file(const char *base)
{
	static const char *const names[] = {
		"new_allocator.h", "alloc_traits.h", "allocator.h", "allocated_ptr.h",
		"basic_string.h", "hashtable.h", "hashtable_policy.h", "shared_ptr_base.h",
		"shared_ptr.h", "unique_ptr.h", "std_function.h", "invoke.h",
	};
	size_t size = strlen(base);

	return is_any(base, size, names, ARRAY_SIZE(names)) || text_begins_with(base, "stl_") ||
	       (size > 4 && strcmp(base + size - 4, ".tcc") == 0);
}

/* -- libc by name, if debug information has replaced the object -- */

/* @name without leading underscores and without a compiler's suffix for clones. */
static const char *bare_name(const char *name, size_t *size_out)
{
	if (text_begins_with(name, "__GI_"))
		name += strlen("__GI_");
	while (*name == '_')
		name++;
	*size_out = strcspn(name, ".@ (");
	return name;
}

/* Functions that access their caller's memory, with variants: "__memset_avx2_unaligned_erms". */
static bool is_memory_function(const char *name, size_t size)
{
	static const char *const names[] = {
		"memset", "memcpy", "memmove", "mempcpy", "memchr", "memcmp", "bzero", "strlen",
		"strcpy", "strcat", "strncpy", "stpcpy", "strcmp", "strchr", "wmemset", "wmemcpy",
	};
	static const char *const variants[] = {"_avx", "_evex", "_sse", "_erms", "_generic",
					       "_unaligned"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (text_begins_with(name, names[i]))
			return strlen(names[i]) == size ||
			       begins_with_any(name + strlen(names[i]), variants,
					       ARRAY_SIZE(variants));
	}
	return false;
}

static bool is_c_function(const char *function)
{
	static const char *const prefixes[] = {"_IO_", "_nl_", "__libc_", "__GI_", "__fopen",
					       "__new_fopen", "(below main)"};
	static const char *const names[] = {
		"brk", "sbrk", "mmap", "mmap64", "mremap", "munmap", "shmat", "madvise",
		"glibc_morecore", "sysmalloc", "sysmalloc_mmap", "sysmalloc_mmap_fallback",
		"systrim", "int_malloc", "int_realloc", "int_memalign", "int_free",
		"tcache_init", "ptmalloc_init", "pthread_once_slow",
		"arena_get2", "new_heap", "alloc_new_heap", "grow_heap",
	};
	size_t size;
	const char *bare = bare_name(function, &size);

	return begins_with_any(function, prefixes, ARRAY_SIZE(prefixes)) ||
	       is_any(bare, size, names, ARRAY_SIZE(names)) || is_memory_function(bare, size);
}

/* Source files of glibc, except names that other programs use, too. */
static bool is_c_file(const char *base)
{
	static const char *const names[] = {
		"malloc.c", "morecore.c", "brk.c", "sbrk.c", "mmap64.c", "mremap.c",
		"allocatestack.c", "pthread_create.c", "genops.c", "filedoalloc.c", "wgenops.c",
		"wfileops.c", "iofopen.c", "vfprintf-internal.c", "vfprintf-process-arg.c",
		"iovsprintf.c", "setlocale.c", "findlocale.c", "loadlocale.c", "loadarchive.c",
		"libc-start.c", "libc_start_call_main.h",
	};
	static const char *const assembly[] = {"mem", "str",  "wmem",
					       "wcs", "stp", "clone"};
	size_t size = strlen(base);

	if (size > 2 && strcmp(base + size - 2, ".S") == 0)
		return begins_with_any(base, assembly, ARRAY_SIZE(assembly));
	return is_any(base, size, names, ARRAY_SIZE(names));
}

static bool is_loader_function(const char *function)
{
	static const char *const prefixes[] = {"_dl_", "__dl", "__rtld_", "_rtld_", "dl_main",
					       "dl_open_worker", "elf_machine_",
					       "elf_get_dynamic_info", "elf_dynamic_do_"};

	return begins_with_any(function, prefixes, ARRAY_SIZE(prefixes));
}

static bool is_loader_file(const char *base)
{
	return text_begins_with(base, "dl-") || strcmp(base, "rtld.c") == 0;
}

static bool is_java_method(const char *function)
{
	static const char *const packages[] = {"java.", "javax.", "jdk.", "sun.", "com.sun."};

	return begins_with_any(function, packages, ARRAY_SIZE(packages));
}

/* A program may be linked statically. */
static bool may_hold_libc(const char *object)
{
	return !object || !*object || !strstr(text_base_name(object), ".so");
}

/* What names show of a function whose source file's directory is not known. */
static enum standard_library library_of_names(const struct frame_text *frame, bool has_object)
{
	const char *function = frame->function ? frame->function : "";
	const char *file = frame->file && !has_object ? text_base_name(frame->file) : "";

	if (frame->file && text_begins_with(frame->file, INTERPRETER_FILE))
		return STANDARD_PACKAGE;
	if (standard_is_namespace(function) || standard_is_thread_start(function) ||
	    is_cxx_file(file))
		return STANDARD_CXX_RUST;
	if (!has_object && is_java_method(function))
		return STANDARD_JAVA;
	/* V8's, in a perf map */
	if (text_begins_with(function, "Builtin:") ||
	    text_begins_with(function, "BytecodeHandler:"))
		return STANDARD_NODE;
	if (!may_hold_libc(frame->object))
		return STANDARD_NONE;
	if (is_loader_function(function) || is_loader_file(file))
		return STANDARD_LOADER;
	return is_c_function(function) || is_c_file(file) ? STANDARD_C : STANDARD_NONE;
}

enum standard_library standard_library(const struct frame_text *frame)
{
	bool has_object = frame->object && *frame->object && strcmp(frame->object, "???") != 0;
	enum my_code_owner owner = find_owner(frame);
	enum standard_library library = has_object ? library_of_object(frame->object) :
						     STANDARD_NONE;

	if (owner != MY_CODE_UNKNOWN)
		return owner == MY_CODE_MINE ? STANDARD_NONE : STANDARD_PACKAGE;
	if (library != STANDARD_NONE)
		return library;
	switch (find_source(frame)) {
	case SOURCE_TOOLCHAIN:
		return STANDARD_CXX_RUST;
	case SOURCE_PACKAGE:
		return STANDARD_PACKAGE;
	case SOURCE_USER:
		return STANDARD_NONE;
	case SOURCE_UNKNOWN:
		break;
	}
	return library_of_names(frame, has_object);
}
