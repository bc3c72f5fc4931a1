/*
 * PHP 7.3 to 8.5 from outside: struct language of interpreter.h.
 *
 *	executor_globals -> execute_data -> functions -> names, files, lines of their opcodes
 *
 * The list leads from the function that runs to its callers. A run of the loop (execute_ex) begins
 * with a frame of the program's own functions that has the flag TOP. A function is identified by
 * the address of its zend_function; each closure has one of its own.
 *
 * Offsets come from a table by version, since PHP publishes none. Builds for threads (ZTS) keep
 * their globals elsewhere, and are not read.
 */
#ifndef PTMEM_LANGUAGES_PHP_H
#define PTMEM_LANGUAGES_PHP_H

#include "languages/interpreter.h"

#define PHP_VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* Offsets that versions differ in. */
struct php_layout {
	uint32_t version;
	uint16_t current; /* in executor_globals: the innermost frame */
	/* in a function of the program's own */
	uint16_t op_count, ops, file;
};

struct php {
	struct php_layout layout;
	struct virtual_layout frames;
	taddr_t globals; /* executor_globals */
	bool has_threads; /* built for threads: each has globals of its own */
	uint32_t version;
};

/* Sets the layouts of @version. False: it is not known. For tests. */
bool php_layout_use(struct php *p, uint32_t version);

#endif
