/*
 * Whether a function belongs to the standard libraries of C, C++ and Rust: by its object if known,
 * else by namespace, function name or source file. Massif files contain the object only for
 * functions without line information.
 */
#ifndef PTMEM_SYMBOLS_STANDARD_LIBRARY_H
#define PTMEM_SYMBOLS_STANDARD_LIBRARY_H

#include <stdbool.h>

/* The known properties of a frame. NULL = unknown. */
struct frame_text {
	const char *function; /* demangled, with or without parameters; or a pseudo frame */
	const char *file;     /* base name or path of the source file */
	const char *object;   /* base name or path of its object */
};

enum standard_library {
	STANDARD_NONE,
	STANDARD_C,
	STANDARD_LOADER,   /* ld.so, and the part of it that is in libc */
	STANDARD_CXX_RUST, /* also functions inlined into a program */
};

enum standard_library standard_library(const struct frame_text *frame);

/* Whether @function belongs to the standard library of C++ or Rust, by its namespace. */
bool standard_is_namespace(const char *function);

/* The start of the qualified name in @function, "int* std::f<A, B>(C)". */
const char *standard_qualified_name(const char *function);

/* Whether @path is a shared object whose base name is @name up to "." or "-". */
bool standard_is_object(const char *path, const char *name);

#endif
