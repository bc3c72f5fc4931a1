/* Converts linker symbols to source names: C++, Rust (legacy and v0) and D, by libiberty. */
#ifndef PTMEM_SYMBOLS_DEMANGLE_H
#define PTMEM_SYMBOLS_DEMANGLE_H

/* The demangled form of @name with its parameters, malloc'ed; NULL if @name is not mangled. */
char *demangle(const char *name);

#endif
