/*
 * Ruby 3.0 to 3.4 (MRI) from outside: struct language of interpreter.h.
 *
 *	thread-local ruby_current_ec -> execution context -> control frames -> iseqs -> names, lines
 *
 * A thread's frames are an array at the end of its VM stack, the innermost one first. A run of the
 * loop (rb_vm_exec) begins with a frame that has the flag FINISH. Fibers have execution contexts of
 * their own. A function is identified by the address of its iseq, which can die.
 *
 * Offsets come from a table by version, since Ruby publishes none.
 */
#ifndef PTMEM_LANGUAGES_RUBY_H
#define PTMEM_LANGUAGES_RUBY_H

#include "languages/interpreter.h"

#define RUBY_VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* Offsets that versions differ in. */
struct ruby_layout {
	uint32_t version;
	uint16_t frame_size;
	uint16_t lines;       /* in an iseq's body: the table of lines */
	uint16_t line_size;   /* bytes of one of its entries */
	bool has_long_texts;  /* strings have a length that is no part of their flags */
	bool has_plain_line;  /* the first line is an int, no object */
};

struct ruby {
	struct ruby_layout layout;
	struct virtual_layout frames;
	taddr_t version_text; /* ruby_version */
	struct { taddr_t start, end; } data; /* writable memory of the object */
	taddr_t symbols; /* an Array of Arrays with the texts of all IDs; 0 = not found */
};

/* Sets the layouts of @version. False: it is not known. For tests. */
bool ruby_layout_use(struct ruby *r, uint32_t version);

/* The String at @addr; NULL if it is none. Visible; the caller frees it. */
char *ruby_read_text(const struct ruby *r, const struct language_memory *m, taddr_t addr);

/* The elements of the Array at @addr, and their number. False if it is none. */
bool ruby_read_array(const struct language_memory *m, taddr_t addr, taddr_t *elements_out,
		     uint64_t *count_out);

/* Finds the interpreter's table of symbols in its data, by what it has. */
void ruby_find_symbols(struct ruby *r, const struct language_memory *m);

/* The text of @id; NULL if it is not known. The caller frees it. */
char *ruby_read_id(const struct ruby *r, const struct language_memory *m, uint64_t id);

/*
 * What a method of @class has before its name: "Cart#", "Cart." if it is the class's own. NULL if
 * the class has no name, or is Object, as that of functions outside of classes. The caller frees
 * it.
 */
char *ruby_read_class(const struct ruby *r, const struct language_memory *m, taddr_t class);

#endif
