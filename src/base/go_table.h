/*
 * The table of functions that every Go program carries for its own tracebacks and that stripping
 * leaves in place (.gopclntab): names, how large frames are, files and lines. Hides its four
 * formats: since Go 1.2, 1.16, 1.18 and 1.20.
 *
 * Addresses are those of the file. The file is untrusted: every offset is checked.
 */
#ifndef PTMEM_BASE_GO_TABLE_H
#define PTMEM_BASE_GO_TABLE_H

#include "base/elf_file.h"
#include "base/types.h"

struct go_table;

struct go_function {
	uint64_t entry, end; /* with the padding after it */
	const char *name;    /* "main.main", "net/http.(*conn).serve"; valid as long as the table */
	bool is_outermost;   /* of a stack: it has no caller */
	bool sets_sp;        /* to another stack: its frames cannot be left by the table */
	uint64_t at;         /* where the table describes it */
};

/* The table of @file, which is the file's; NULL if there is none that can be read. */
const struct go_table *go_table_of(struct elf_file *file);

/* Bytes of the file, and where they are mapped. */
struct go_bytes {
	const uint8_t *data;
	size_t size;
	uint64_t vaddr;
};

/*
 * The same from the bytes of a table, which must outlive it. @text: where its functions' code
 * begins, if it does not say. The caller frees it with free().
 */
struct go_table *go_table_parse(const struct go_bytes *bytes, uint64_t text);

/* The n of Go 1.n, with which @file was built; 0 = unknown, or before 1.18. */
unsigned go_table_release(struct elf_file *file);

/* The function that contains @vaddr. */
bool go_table_find(const struct go_table *t, uint64_t vaddr, struct go_function *out);

/*
 * The function that called with the return address @vaddr + 1. A call from C into Go on the stack
 * of a goroutine looks as if it came from runtime.systemstack_switch, before Go 1.21 from its
 * entry: then f.entry is @vaddr + 1.
 */
bool go_table_find_caller(const struct go_table *t, uint64_t vaddr, struct go_function *out);

/* The one called @name, "runtime.mallocgc". */
bool go_table_find_name(const struct go_table *t, const char *name, struct go_function *out);

/*
 * How far the word with the return address is above the stack pointer at the instruction at @vaddr
 * of @f, which does not set it. False if the table does not have it.
 */
bool go_table_frame(const struct go_table *t, const struct go_function *f, uint64_t vaddr,
		    uint32_t *bytes_out);

/*
 * If the code at *@vaddr of @f was inlined: the name of the innermost inlined function; *@vaddr
 * becomes the place in its caller. Else false: it is of @f itself. A caller limits the repetitions.
 */
bool go_table_inlined(const struct go_table *t, const struct go_function *f, uint64_t *vaddr,
		      const char **name_out);

/*
 * File and line of the instruction at @vaddr of @f: those of the innermost function that was
 * inlined there. @file_out is valid as long as the table.
 */
bool go_table_line(const struct go_table *t, const struct go_function *f, uint64_t vaddr,
		   const char **file_out, uint32_t *line_out);

#endif
