/*
 * What compilers call their functions in perf maps and jitdumps, taken apart:
 *
 *	py::Cart.add:/srv/shop/cart.py          Cart.add, /srv/shop/cart.py
 *	JS:*add /srv/shop/cart.js:12:9          add, /srv/shop/cart.js, line 12
 *	LazyCompile:~add file:///a/b.mjs:3:1    add, /a/b.mjs, line 3
 *
 * All other names are functions' names as they are: com.example.Cart::add.
 */
#ifndef PTMEM_LANGUAGES_CODE_NAME_H
#define PTMEM_LANGUAGES_CODE_NAME_H

#include "base/types.h"

struct code_name {
	char *function; /* never NULL; the caller frees both */
	char *path;     /* of the source file, or a name as "node:fs"; NULL = unknown */
	uint32_t line;  /* where the function begins; 0 = unknown */
};

void code_name_parse(const char *text, struct code_name *out);
void code_name_deinit(struct code_name *n);

#endif
