/*
 * The watched functions: a table of symbol names, the meaning of their arguments, and which
 * objects' functions are watched (--soname-synonyms=somalloc=PATTERN: libc's and libstdc++'s
 * always are; others without the option, or if their soname matches PATTERN; "NONE": an object
 * without one, such as the executable).
 */
#ifndef PTMEM_TRACEE_STATE_PROBE_H
#define PTMEM_TRACEE_STATE_PROBE_H

#include "arch/arch.h"
#include "base/alloc.h"
#include "base/elf_file.h"
#include "tracee/state/heap_event.h"

/* @synonyms: the option's value, "SYNONYM=PATTERN,..."; NULL = not given. */
bool soname_is_watched(struct elf_file *file, const char *synonyms);

/* Whether @file is the C++ standard library. */
bool soname_is_standard_cxx(struct elf_file *file);

/* The watched functions: a table of symbol names, and the meaning of their arguments. */

enum probe_kind {
	PROBE_ALLOC, /* result is a block */
	PROBE_REALLOC, /* takes one block, returns one */
	PROBE_FREE, /* takes a block */
	PROBE_LOADER, /* the dynamic linker reports a change of its list of objects */
	PROBE_EXCEPTION, /* a C++ exception is about to be created */
	PROBE_THROW, /* it is thrown: unwinding starts */
	PROBE_CATCH, /* it was caught */
	PROBE_END, /* the program's last own destructor; libraries' are still to run */
	PROBE_MAPPING, /* mmap, mremap, munmap; watched only on request, never by a pad */
	PROBE_REQUEST,
	PROBE_MARKED_ALLOC,
	PROBE_MARKED_FREE, /* markers in the text; client_request.h */
};

#define PROBE_NO_ARG 0xff

struct probe {
	const char *symbol;
	uint8_t kind;      /* enum probe_kind */
	uint8_t function;  /* enum heap_function */
	/* size = arg[size_arg] * arg[count_arg]; PROBE_NO_ARG: absent */
	uint8_t size_arg, count_arg;
	uint8_t align_arg, block_arg; /* block_arg: the old block, or the block to free */
	/* *arg[result_arg] receives the block, and the return value is 0 on success */
	uint8_t result_arg;
	bool is_page_aligned; /* valloc, pvalloc */
	bool may_throw;     /* operator new */
	bool is_string;     /* the result is a string, which gives the size */
};

/* The table, terminated by a NULL symbol. */
extern const struct probe probe_table[];

/* The definition of a watched function in an ELF file. */
struct probe_site {
	const struct probe *probe;
	uint64_t vaddr;
	/*
	 * calls no other watched function: malloc, calloc or free that is also __libc_malloc,
	 * ..., or jemalloc's
	 */
	bool is_leaf;
	uint64_t size; /* of the function; at least 1, guessed if the symbol has none */
};
/* A jump by which the function at @function begins again (control/install.h). */
struct probe_again {
	uint64_t vaddr, function;
	uint8_t bytes[2];
};
struct probe_sites {
	VEC(struct probe_site) list;
	VEC(struct probe_again) again;
	uint64_t r_debug; /* vaddr of the dynamic linker's struct r_debug; 0 = not in this file */
};

/* Whether traps of @p are markers. */
static inline bool probe_is_marker(const struct probe *p)
{
	return p->kind >= PROBE_REQUEST;
}

/* Whether it is operator new or delete. */
static inline bool probe_is_cxx(const struct probe *p)
{
	return p->function == FUNCTION_NEW || p->function == FUNCTION_DELETE;
}

/* Whether a pad can replace its breakpoint. */
static inline bool probe_may_be_hot(const struct probe *p)
{
	return p->kind != PROBE_LOADER && p->kind != PROBE_MAPPING && p->kind != PROBE_END;
}

/*
 * Finds all definitions in @file, one per address, including elf_file.fini as a PROBE_END; and
 * r_debug. The caller frees @out's lists with vec_deinit.
 */
void probe_sites_find(struct elf_file *file, struct probe_sites *out);

/* The arguments of a call, from the registers at the function's entry. */
struct probe_call {
	uint64_t size, align;
	taddr_t block;  /* old block or block to free */
	taddr_t result; /* where the result is stored; 0 = return value */
	uint64_t prot, flags; /* PROBE_MAPPING of mmap */
};
void probe_read_call(const struct probe *p, const struct arch *arch, const struct arch_regs *regs,
		     struct probe_call *out);

#endif
