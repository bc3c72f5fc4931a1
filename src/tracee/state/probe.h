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
	PROBE_WITHIN, /* a function of --within, or of --label; by a pad if only of that */
	PROBE_WITHIN_END, /* where a call of one returns to; never by a pad */
	PROBE_REQUEST,
	PROBE_MARKED_ALLOC,
	PROBE_MARKED_FREE, /* markers in the text; client_request.h */
};

#define PROBE_NO_ARG 0xff

/* Whether a call has succeeded: its result as an int, compared with ok_value. */
enum probe_ok {
	PROBE_OK_ALWAYS,
	PROBE_OK_EQUAL,
	PROBE_OK_OTHER,
	PROBE_OK_LEAST, /* equal or greater */
	PROBE_OK_MORE,
};

struct custom_probe;
struct custom_probes;

struct probe {
	const char *symbol;
	uint8_t kind;      /* enum probe_kind */
	uint8_t function;  /* enum heap_function */
	/* size = arg[size_arg] * arg[count_arg]; PROBE_NO_ARG: absent */
	uint8_t size_arg, count_arg;
	uint8_t align_arg, block_arg; /* block_arg: the old block, or the block to free */
	uint8_t result_arg; /* *arg[result_arg] receives the block */
	uint8_t ok;         /* enum probe_ok */
	int32_t ok_value;
	uint8_t pool;       /* number of the argument, from 1, that is the block's pool; 0 = none */
	bool is_reset;      /* PROBE_FREE: it releases all blocks of the pool */
	bool is_page_aligned; /* valloc, pvalloc */
	bool may_throw;     /* operator new */
	bool is_string;     /* the result is a string, which gives the size */
	uint64_t fixed_size; /* without a size_arg */
	struct custom_probe *custom; /* of the user (custom_probe.h); NULL: of the table */
};

/* The table, terminated by a NULL symbol. */
extern const struct probe probe_table[];

/* By the code of which allocator a function without a name was found (static_malloc.h). */
enum probe_guess { GUESS_NONE, GUESS_GLIBC, GUESS_MUSL, GUESS_JEMALLOC };

const char *probe_guess_name(enum probe_guess guess);

/* The definition of a watched function in an ELF file. */
struct probe_site {
	const struct probe *probe;
	uint64_t vaddr;
	/*
	 * calls no other watched function: malloc, calloc or free that is also __libc_malloc,
	 * ..., or jemalloc's
	 */
	bool is_leaf;
	uint8_t guess; /* enum probe_guess: to be confirmed by its calls */
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
	/* an address of the user's cannot be that of a function of malloc's family */
	bool is_refused;
	uint8_t pointed;   /* a bit for each struct custom_probe.group that is in the list */
	uint64_t r_debug; /* vaddr of the dynamic linker's struct r_debug; 0 = not in this file */
};

/* Whether traps of @p are markers. */
static inline bool probe_is_marker(const struct probe *p)
{
	return p->kind >= PROBE_REQUEST;
}

/* Whether it is a function of the program's own allocator (custom_probe.h). */
static inline bool probe_is_own(const struct probe *p)
{
	return p->function >= FUNCTION_REQUEST && p->kind <= PROBE_FREE;
}

/* Whether a call whose result is @result has succeeded. */
bool probe_has_succeeded(const struct probe *p, uint64_t result);

/* Why a pad cannot replace its breakpoint: static text; NULL: it can. */
const char *probe_why_cold(const struct probe *p);

/* Whether it is operator new or delete. */
static inline bool probe_is_cxx(const struct probe *p)
{
	return p->function == FUNCTION_NEW || p->function == FUNCTION_DELETE;
}

/* Whether a pad can replace its breakpoint. */
static inline bool probe_may_be_hot(const struct probe *p)
{
	return p->kind != PROBE_LOADER && p->kind != PROBE_MAPPING && p->kind != PROBE_END &&
	       p->kind != PROBE_WITHIN_END;
}

/*
 * Finds all definitions in @file, one per address, including elf_file.fini as a PROBE_END; and
 * r_debug. @custom: functions of the user's, too; NULL = none. The caller frees @out's lists with
 * vec_deinit.
 */
void probe_sites_find(struct elf_file *file, const struct custom_probes *custom,
		      struct probe_sites *out);

/* The arguments of a call, from the registers at the function's entry. */
struct probe_call {
	uint64_t size, align;
	taddr_t block;  /* old block or block to free */
	taddr_t result; /* where the result is stored; 0 = return value */
	taddr_t pool;
	uint64_t prot, flags; /* PROBE_MAPPING of mmap */
};
void probe_read_call(const struct probe *p, const struct arch *arch, const struct arch_regs *regs,
		     struct probe_call *out);

#endif
