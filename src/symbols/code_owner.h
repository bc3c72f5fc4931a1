/*
 * Whose code a function is: the user's, as --my-code says, or part of a standard library or
 * package.
 */
#ifndef PTMEM_SYMBOLS_CODE_OWNER_H
#define PTMEM_SYMBOLS_CODE_OWNER_H

#include <stdbool.h>

#include "base/alloc.h"
#include "base/types.h"

/*
 * What the user says about paths: --my-code and --not-my-code. A pattern (base/shell_words.h)
 * without a '/' is compared with the last part of a path. Source file and object are both compared;
 * of the patterns that match, the last one decides. The report's page has the same rule in
 * my_code.js.
 */

enum my_code_owner { MY_CODE_UNKNOWN, MY_CODE_MINE, MY_CODE_NOT_MINE };

/* Zeroed = no patterns. */
struct my_code {
	VEC(char *) rule; /* '+' (mine) or '-' and the pattern, in the order given; owned */
};

#define MY_CODE_META "my_code" /* the key of a rule in recordings, one for each */

/* Adds "+PATTERN" or "-PATTERN"; ignores anything else, which a damaged file may have. */
void my_code_add(struct my_code *m, const char *rule);
/* Values of --my-code and --not-my-code; false: @pattern is empty. */
bool my_code_include(const char *pattern, void *my_code);
bool my_code_exclude(const char *pattern, void *my_code);
void my_code_deinit(struct my_code *m);

/* @m, @source, @object: may be NULL, unknown. */
enum my_code_owner my_code_find(const struct my_code *m, const char *source, const char *object);

/*
 * Whose code a function is: the user's, or part of a standard library or package. Reports ask only
 * this, for each function, inlined ones included. The first of these that knows it decides:
 *
 *	1. --my-code and --not-my-code
 *	2. the object, if it is a standard library of C, C++ or Rust, or malloc's
 *	3. the source file, if its directory is known: /usr/include/c++, /rustc/HASH/library ...
 *	4. the object, namespace, function name or the source file's base name
 *
 * HotSpot is known by its object, Java's class library by packages (java.util...), if the frame has
 * no object, as Java's methods have none. The object of a function in a script is the script.
 *
 * A lambda of the user in an instance of std::thread is the user's by 3, though the instance is
 * not. Massif files contain base names of source files, and the object only for functions without
 * line information.
 */

/* The known properties of a frame. NULL = unknown. */
struct frame_text {
	const char *function; /* demangled, with or without parameters; or a pseudo frame */
	const char *file;     /* base name or path of the source file */
	const char *object;   /* base name or path of its object */
	const char *dir;      /* of the source file, if `file` is a base name */
	const struct my_code *my_code; /* NULL = the user has said nothing */
};

/* Source files of an interpreter's own functions are <internal:NAME>, as Ruby calls them. */
#define INTERPRETER_FILE "<internal:"

enum standard_library {
	STANDARD_NONE,
	STANDARD_C,
	STANDARD_LOADER,   /* ld.so, and the part of it that is in libc */
	STANDARD_CXX_RUST, /* also inlined into a program; and Ada's, D's, Fortran's, Go's, GHC's */
	STANDARD_MALLOC,   /* a library that replaces malloc */
	STANDARD_JAVA,     /* Java's virtual machine and class library */
	STANDARD_NODE,     /* node, and its own scripts */
	STANDARD_PACKAGE,  /* sources below /usr, and what the user excluded */
};

/* STANDARD_NONE: the user's, or another library's. */
enum standard_library standard_library(const struct frame_text *frame);

/*
 * The allocator (malloc/allocators.h) that the library at @path is; NULL: it is none, or not known.
 */
const char *standard_malloc(const char *path);

/* Whether the source file is known by more than its base name. */
bool standard_has_path(const struct frame_text *frame);

/* Whether @function belongs to the standard library of C++ or Rust, by its namespace. */
bool standard_is_namespace(const char *function);

/* The start of the qualified name in @function, "int* std::f<A, B>(C)". */
const char *standard_qualified_name(const char *function);

/* Whether @function of such a library is where its threads begin: its callers are libc's. */
bool standard_is_thread_start(const char *function);

/* Whether @object (NULL = unknown) is such a library, with nothing of the user in it. */
bool standard_is_library(const char *object);

#endif
