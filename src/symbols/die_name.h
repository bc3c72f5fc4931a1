/*
 * The qualified name of a function by its DIE, as the symbol table would have it:
 *
 *	std::map<int, int>::operator[](int const&)   from DW_AT_linkage_name, demangled
 *	main::{lambda}::operator()                   without it, from the enclosing DIEs
 *
 * DW_AT_name alone ("operator[]") does not say which function is meant.
 */
#ifndef PTMEM_SYMBOLS_DIE_NAME_H
#define PTMEM_SYMBOLS_DIE_NAME_H

#include <elfutils/libdw.h>
#include <stdbool.h>

/*
 * @die: a function, an inlined call, or an instance of either. @no_demangle: only DW_AT_name, as in
 * Massif. NULL = unknown. The caller frees it.
 */
char *die_function_name(const Dwarf_Die *die, bool no_demangle);

#endif
