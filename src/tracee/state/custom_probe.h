/*
 * Functions that the user names: allocators of the program's own, those of malloc's family at
 * addresses of a program without symbols (--probe), and others of which each call is watched
 * (--within, --label). Hides the grammar, and how names are compared.
 *
 *	alloc:FUNCTION:size=ARG[,count=ARG][,result=ret|*ARG][,ok=ret OP N][,pool=ARG]
 *	realloc:FUNCTION:[block=]ARG,size=ARG[,...]
 *	free:FUNCTION:[block=]ARG[,pool=ARG]
 *	reset:FUNCTION:[pool=]ARG
 *	malloc=ADDRESS, calloc=ADDRESS, ...    a function of the table of probe.h
 *	@FILE                                  one of these on each line
 *
 * ARG: arg1 to arg6, an integer or pointer; a size may also be a number. FUNCTION: a symbol, a name
 * of C++ as it is printed, with or without its parameters, or an address of the executable's file.
 */
#ifndef PTMEM_TRACEE_STATE_CUSTOM_PROBE_H
#define PTMEM_TRACEE_STATE_CUSTOM_PROBE_H

#include "base/alloc.h"
#include "tracee/state/probe.h"

struct custom_probe {
	struct probe probe; /* its custom is this one, its symbol owned */
	char *text;         /* as given, for messages */
	char *word;         /* last identifier of the name; in each mangled form of it; owned */
	bool is_operator;   /* of C++: there is none */
	uint64_t address;   /* in the executable's file; 0 = it is found by its name */
	bool is_found, is_called;
	bool is_taken;      /* PROBE_WITHIN: the function is one that allocates */
	/* PROBE_WITHIN: --within measures its calls; --label names what they do */
	bool is_measured, is_label;
	/*
	 * not of the user's, and called by a pointer: it and all others of its kind are watched
	 * together, in files that have each without copies (function_copies.h); NULL = otherwise
	 */
	const char *const *setters;
	uint8_t group; /* of those with setters: custom_probes_add_pointed */
	/* another one of the same function, which has its calls; NULL = none */
	const struct custom_probe *same;
};

/* Owns its elements. Zeroed = empty. */
struct custom_probes {
	VEC(struct custom_probe *) list;
	const struct probe *table; /* probe_table: which functions can have an address */
	/* The demangled form of a symbol, malloc'ed; NULL if it is not mangled */
	char *(*demangle)(const char *name);
};

/* Adds the probes of @text to @p. 0, or -errno after a message. */
int custom_probes_add(struct custom_probes *p, const char *text);
/*
 * Adds one that is called by a pointer, which functions with names like @setters set. Those of a
 * group, below 8, pass blocks between them: all of them are watched, or none.
 */
void custom_probes_add_pointed(struct custom_probes *p, const char *text,
			       const char *const *setters, uint8_t group);
/* The function of --within whose name is the first @size bytes at @name; added if it is new. */
struct custom_probe *custom_probes_within(struct custom_probes *p, const char *name, size_t size);
void custom_probes_deinit(struct custom_probes *p);

/* PROBE_WITHIN: whether the ends of its calls count; otherwise only entries do. */
static inline bool custom_probe_has_ends(const struct custom_probe *c)
{
	return c->is_measured || c->is_label;
}

/* The first of @p that is of the function @sym, or NULL. Its address is not compared. */
struct custom_probe *custom_probes_find(const struct custom_probes *p,
					const struct elf_symbol *sym);

/* Whether @p is a function of malloc's family at an address: its calls have to confirm that. */
bool custom_probe_is_guess(const struct probe *p);

/* Whether @p is a function that is called by a pointer: custom_probes_add_pointed. */
static inline bool custom_probe_is_pointed(const struct probe *p)
{
	return p->custom && p->custom->setters;
}

/* Whether there are guesses in @p, which may be NULL. */
bool custom_probes_have_guesses(const struct custom_probes *p);

/* One of malloc's family that releases, and was never called; NULL = none. */
const struct custom_probe *custom_probes_unused_free(const struct custom_probes *p);

/* At the end of a run: warns about those that were not found, or not called. */
void custom_probes_report(const struct custom_probes *p);

#endif
