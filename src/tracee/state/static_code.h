/*
 * The functions of a static program without symbols: which call which, and which refer to values
 * that are looked for. Hides how functions are found: by the tables of .eh_frame, and where these
 * have none by direct calls.
 */
#ifndef PTMEM_TRACEE_STATE_STATIC_CODE_H
#define PTMEM_TRACEE_STATE_STATIC_CODE_H

#include "arch/arch.h"
#include "base/alloc.h"

struct elf_file;

enum { STATIC_NONE = -1, STATIC_MANY = -2 }; /* instead of the index of a function */

/* What is looked for in functions: a value or a text that is referred to, or a stored byte. */
struct static_wanted {
	const char *text;      /* NULL: one of these */
	uint64_t value;
	bool is_store;         /* value is stored as a byte at this offset */
	int32_t offset;
};

#define STATIC_WANTED_MAX 32

struct static_function {
	uint64_t start, end;
	uint32_t has;          /* bit i: refers to wanted[i] */
	uint32_t stops, products;
	uint32_t instructions; /* without padding */
	uint64_t jumps_to;     /* where its first instruction jumps to; 0 = it is no jump */
	bool is_called;        /* by a call instruction */
	bool is_taken;         /* code refers to its address */
};

struct static_edge {
	uint32_t from, to;     /* indexes of functions */
};

struct static_code {
	VEC(struct static_function) functions; /* ascending, disjoint */
	VEC(struct static_edge) out, in; /* calls and jumps; by from, then to; by to, then from */
};

/* Whether @text, with its terminator, is in the file; *vaddr_out: where, if it is not NULL. */
bool static_code_has_text(struct elf_file *file, const char *text, uint64_t *vaddr_out);

/*
 * Reads the code of @file. Of @wanted, @count at most STATIC_WANTED_MAX, those that the file does
 * not have are in no function.
 */
void static_code_read(struct elf_file *file, const struct static_wanted *wanted, size_t count,
		      struct static_code *out);
void static_code_deinit(struct static_code *c);

/* The only function that has all of @has, bits of the wanted; STATIC_NONE or STATIC_MANY. */
int static_code_find(const struct static_code *c, uint32_t has);

/* Whether the function @from calls or jumps to the start of @to. False if one is negative. */
bool static_code_calls(const struct static_code *c, int from, int to);
/* The same, or a function does that @from calls. */
bool static_code_reaches(const struct static_code *c, int from, int to);
/* How many functions call or jump to @to. */
size_t static_code_callers(const struct static_code *c, int to);
/* The edges that begin or end at function @i: from the first at *first_out; their number. */
size_t static_code_out(const struct static_code *c, int i, size_t *first_out);
size_t static_code_in(const struct static_code *c, int i, size_t *first_out);

/* Adds @i to @only: what is the only one so far, STATIC_NONE or STATIC_MANY. */
static inline void static_only(int *only, int i)
{
	if (*only != i)
		*only = *only == STATIC_NONE ? i : STATIC_MANY;
}

#endif
