/*
 * Perl 5.28 to 5.40 from outside: struct language of interpreter.h.
 *
 *	interpreter -> stack infos -> contexts -> CVs -> names; positions are COPs
 *
 * In builds with threads (ithreads) a thread-local variable has the interpreter; in others its
 * parts are variables. A thread's frames are contexts in arrays, one for each nested run (the block
 * of a sort, an overloaded operator), linked from the innermost outwards. Only some contexts are
 * functions: subs, formats, and files and strings that are evaluated. Each has the position of its
 * caller. A run of the loop (Perl_runops_standard) begins with one that returns to no op.
 *
 * What a position leads to, a COP, can be freed, and a copy of one is made for each BEGIN block. So
 * pads record its line, and the op that is executed: Perl removes the COP of the first statement of
 * a block, but keeps its place in the tree of ops, as it does for its own messages.
 *
 * The function outside of all others is the program's tree; while that is compiled, its main CV.
 *
 * Offsets come from a table by version, since Perl publishes none.
 */
#ifndef PTMEM_LANGUAGES_PERL_H
#define PTMEM_LANGUAGES_PERL_H

#include "languages/interpreter.h"

#define PERL_VERSION(major, minor) ((uint32_t)(major) << 8 | (minor))

/* Offsets that versions differ in. */
struct perl_layout {
	uint32_t version;
	uint16_t stacks, position, main_function, program; /* in the interpreter */
	uint16_t op, root; /* the same */
	uint16_t context; /* bytes of one */
	uint16_t sub, eval; /* in a context: its CV */
	uint16_t statement; /* the type of an op that is a COP; the next one is, too */
	bool has_names_inside; /* the name of a package is in its hash's body, not in its array */
};

/* Variables of builds without threads. */
enum perl_variable {
	PERL_STACKS, PERL_POSITION, PERL_MAIN_FUNCTION, PERL_PROGRAM, PERL_OP, PERL_ROOT,
	PERL_VARIABLES
};

struct perl {
	struct perl_layout layout;
	struct virtual_layout frames;
	taddr_t version_bytes; /* PL_version */
	taddr_t variable[PERL_VARIABLES]; /* 0: threads have interpreters */
};

#endif
