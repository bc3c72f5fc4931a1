/*
 * From a code address to names: function, file and line, inlined frames, module. Each address is
 * looked up once; the result does not move until symbols_changes does. Independent of profiles.
 */
#ifndef PTMEM_SYMBOLS_SYMBOLS_H
#define PTMEM_SYMBOLS_SYMBOLS_H

#include "base/types.h"
#include "tracee/state/module.h"

/* One source-level function at an address. Strings may be NULL = unknown. */
struct symbol_frame {
	/* demangled with parameters; if inlined, as in inlines.c; raw without demangling */
	const char *name;
	const char *plain; /* of an inlined one: DW_AT_name, without its scope; NULL = unknown */
	const char *file; /* base name of the source file */
	const char *dir;  /* its directory (as in DWARF, made absolute with the compilation dir) */
	uint32_t line;    /* 0 = unknown */
};

struct symbol {
	const char *object;         /* path of the module; NULL for code outside any */
	const char *raw;            /* the real function as in the symbol table; NULL = unknown */
	struct symbol_frame *frame; /* innermost inlined first; the last is the real function */
	uint32_t count;             /* at least 1 */
	bool is_below_main;         /* the real function is start-up code (__libc_start_main ...) */
	bool is_main;               /* the real function is main */
	/* its unit's split debug information (.dwo) was not found: inlined functions are unknown */
	bool lacks_inlined;
};

/* The extent of a look-up. */
enum symbol_part {
	SYMBOL_ALL,
	SYMBOL_REAL, /* the real function without file and line: mostly known without DWARF */
};

struct symbols_options {
	bool no_demangle;
	bool no_inline;       /* only the real function */
	bool show_below_main; /* otherwise start-up functions are named "(below main)" */
	/* colon-separated roots of separate debug files; NULL = /usr/lib/debug */
	const char *debug_dirs;
};

struct symbols;

struct symbols *symbols_new(const struct symbols_options *options);
void symbols_free(struct symbols *s);
/* Forgets all objects and results, so that their memory and files are free again. */
void symbols_forget(struct symbols *s);

/*
 * The names at @pc (already minus 1 for a caller). @m may be NULL. The result is never NULL. With
 * SYMBOL_REAL only the last frame's name and the flags are guaranteed.
 */
const struct symbol *symbols_find(struct symbols *s, const struct module *m, taddr_t pc,
				  enum symbol_part part);

/*
 * Whether @symbol is of a function that only calls main. Reports show its name, and neither a
 * source file nor inlined calls: the debug information of libc, which takes 40 ms to read, is not
 * read for it.
 */
bool symbol_is_startup(const struct symbol *symbol);

/* Changes when other names are found, or defined, for an address that had some. */
uint64_t symbols_changes(const struct symbols *s);

/* Makes the object of @m (may be NULL) known, as a look-up does. */
void symbols_note(struct symbols *s, const struct module *m);

/* Whether symbols_fetch would ask for any. */
bool symbols_wants_fetch(const struct symbols *s);

/*
 * Fetches debug files for known objects that have none, and forgets what was found without them,
 * which stays valid. May take long, and returns early if @should_stop does.
 */
void symbols_fetch(struct symbols *s, bool (*should_stop)(void *ctx), void *ctx);

/*
 * Only the name of the real function at @pc, from the symbol tables: reads no DWARF, so it is cheap
 * enough while the target is stopped. NULL = unknown. Valid until symbols_free.
 */
const char *symbols_function(struct symbols *s, const struct module *m, taddr_t pc);

/*
 * Defines the names at @pc (replayed events, tests), as if found in a module with path @object.
 * Copies everything.
 */
void symbols_define(struct symbols *s, uint32_t module_id, taddr_t pc, const struct symbol *sym);

/*
 * Functions without code in an object: interpreted or generated code, or a label for memory that no
 * code allocated. symbols_name returns the key (base/frame_key.h) of @sym, whose frame[0] says all,
 * the same for the same names; copies everything. symbols_named: the names of a key, never NULL.
 */
uint64_t symbols_name(struct symbols *s, const struct symbol *sym);
const struct symbol *symbols_named(struct symbols *s, uint64_t key);

#endif
