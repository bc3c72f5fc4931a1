/*
 * Reports of at most BRIEF_SIZE bytes, for a small screen, a comment on a change, or a program that
 * reads them: a title, some facts, and findings, largest first, each with the command that shows
 * more. What does not fit is counted. Reports say what they have found; this decides what of it is
 * shown, how names and commands are written so that nothing in them acts on a terminal, a shell or
 * a reader of markdown, and how long anything may be.
 *
 *	process 12, ./server
 *	RSS 120 MiB
 *
 *	  80.0 MiB  66.7 %  live blocks of malloc
 *	            $ ptmem -p 12 --inspect
 */
#ifndef PTMEM_OUTPUT_BRIEF_H
#define PTMEM_OUTPUT_BRIEF_H

#include <stdio.h>

#include "base/alloc.h"
#include "base/types.h"

#define BRIEF_SIZE 4096u

enum brief_form { BRIEF_TEXT, BRIEF_MARKDOWN };

/* The command that makes the brief report; words are the caller's. */
struct brief_command {
	char *const *argv;      /* NULL-terminated */
	size_t options;         /* of these, the first: argv[0] and ptmem's own options and files */
};

struct brief_finding {
	uint64_t bytes;
	char *what, *name;      /* words, and what they are about, or NULL; owned */
	char *more;             /* options that the command needs to show more; owned, or NULL */
};

/* Zero but for the command: empty. */
struct brief {
	struct brief_command command;
	char *title;            /* owned */
	VEC(char *) facts;      /* owned */
	VEC(struct brief_finding) findings;
	const char *all;        /* as brief_finding.more, for all of the report; NULL = nothing */
	size_t prefix;          /* bytes that will precede each line, which count, too */
};
void brief_deinit(struct brief *b);

/* These take ownership of texts; control characters and the like in them are made visible. */
void brief_set_title(struct brief *b, char *title);
void brief_add_fact(struct brief *b, char *text);
/*
 * @what: "66.7 %  live blocks of malloc"; @name: a name of the program's, or NULL. @more: as in
 * struct brief_finding: shell words.
 */
void brief_add(struct brief *b, uint64_t bytes, char *what, char *name, char *more);

/* BRIEF_SIZE bytes at most, in UTF-8. */
void brief_print(FILE *file, struct brief *b, enum brief_form form);

/* @word for a shell: as it is, or in quotes. The caller frees it. */
char *brief_shell_word(const char *word);

#endif
