/*
 * From a code address to names: function, file and line, inlined frames, module.
 *
 * An address is looked up once and then kept. The result of a lookup stays valid
 * and in place until symbols_free. Knows nothing of profiles.
 */
#ifndef PTMEM_SYMBOLS_SYMBOLS_H
#define PTMEM_SYMBOLS_SYMBOLS_H

#include "base/types.h"
#include "tracee/state/module.h"

/* One source-level function at an address. Strings may be NULL = unknown. */
struct symbol_frame {
	/* demangled with parameters; of inlined ones as in die_name.h; raw without demangling */
	const char *name;
	const char *file; /* base name of the source file */
	const char *dir;  /* its directory (as in DWARF, made absolute with the compilation dir) */
	uint32_t line;    /* 0 = unknown */
};

struct symbol {
	const char *object;         /* path of the module; NULL for code outside any */
	struct symbol_frame *frame; /* innermost inlined first; the last is the real function */
	uint32_t count;             /* at least 1 */
	bool is_below_main;         /* the real function is start-up code (__libc_start_main ...) */
	bool is_main;               /* the real function is main */
};

/* What is asked of an address. */
enum symbol_part {
	SYMBOL_ALL,
	SYMBOL_REAL, /* the real function, without file and line: mostly known without DWARF */
};

struct symbols_options {
	bool no_demangle;
	bool no_inline;       /* only the real function */
	bool show_below_main; /* else start-up functions are named "(below main)" */
	/* colon-separated roots of separate debug files; NULL = /usr/lib/debug */
	const char *debug_dirs;
};

struct symbols;

struct symbols *symbols_new(const struct symbols_options *options);
void symbols_free(struct symbols *s);

/*
 * The names at @pc (already minus 1 for a caller). @m may be NULL. Never NULL. Where only
 * SYMBOL_REAL is asked for, the last frame's name and the flags are right, and more may be there.
 */
const struct symbol *symbols_find(struct symbols *s, const struct module *m, taddr_t pc,
				  enum symbol_part part);

/*
 * Only the name of the real function at @pc, by the symbol tables: no DWARF is read,
 * so it is cheap while the target waits. NULL = unknown. Stays until symbols_free.
 */
const char *symbols_function(struct symbols *s, const struct module *m, taddr_t pc);

/*
 * Gives the names at @pc by hand (replayed events, tests): as if found there in
 * a module of path @object. Copies everything.
 */
void symbols_define(struct symbols *s, uint32_t module_id, taddr_t pc, const struct symbol *sym);

#endif
