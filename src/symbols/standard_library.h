/*
 * Which functions are of the standard libraries of C, C++ and Rust: by the object where that is
 * known, else by namespace, by the names of their functions, or by those of their source files.
 * Massif files have the object only of functions without source lines.
 */
#ifndef PTMEM_SYMBOLS_STANDARD_LIBRARY_H
#define PTMEM_SYMBOLS_STANDARD_LIBRARY_H

#include <stdbool.h>

/* What a report knows of a frame. NULL = unknown. */
struct frame_text {
	const char *function; /* demangled, with or without parameters; or a pseudo frame */
	const char *file;     /* base name or path of the source file */
	const char *object;   /* base name or path of the object that holds it */
};

enum standard_library {
	STANDARD_NONE,
	STANDARD_C,
	STANDARD_LOADER,   /* ld.so, also the part of it that is in libc */
	STANDARD_CXX_RUST, /* also where its functions are inlined in a program */
};

enum standard_library standard_library(const struct frame_text *frame);

/* Whether @function is of the standard library of C++ or Rust, by its namespace. */
bool standard_is_namespace(const char *function);

/* Where the qualified name begins in @function, "int* std::f<A, B>(C)". */
const char *standard_qualified_name(const char *function);

/* Whether @path is a shared object whose base name is @name up to "." or "-". */
bool standard_is_object(const char *path, const char *name);

#endif
