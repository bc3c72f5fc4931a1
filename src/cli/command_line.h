/*
 * The command line of ptmem, and the two places read before it: ~/.config/ptmem/ptmemrc and
 * PTMEM_OPTS. Later options win. One table (option_table.c) drives parsing, defaults and --help;
 * tests compare the man page and the shell completions with it. A new option is one row there and
 * one field of struct options.
 */
#ifndef PTMEM_CLI_COMMAND_LINE_H
#define PTMEM_CLI_COMMAND_LINE_H

#include <stdio.h>

#include "base/types.h"
#include "session/options.h"

/*
 * The table of options: each option's field in struct options, its possible values, and its text in
 * the help.
 */

enum option_type {
	FLAG,    /* bool, no value */
	MORE,    /* log_level, no value */
	LESS,    /* log_level, no value */
	YES_NO,  /* bool */
	NUMBER,  /* uint32_t */
	MAY_NUMBER, /* uint32_t; the value is optional: row.implied */
	PERIOD,  /* uint32_t, or no: 0 */
	SIZE,    /* uint64_t, with K, M or G */
	DECIMAL, /* double */
	TIME,    /* double: seconds, with s, m, h or d */
	CHOICE,  /* an enum with the values of the choices */
	SET,     /* uint32_t: one bit for each of the comma-separated choices */
	TEXT,    /* const char * */
	TEXTS,   /* struct option_strings */
	PATTERNS, /* struct my_code: what the option "not-..." excludes, the other one includes */
	SECONDS, /* double; the value is optional */
	MAY_TEXT, /* const char *; the value is optional: "" */
	PIDS,    /* pid and pid_count */
	HELP,    /* enum help_mode; the value is optional */
};

enum option_flag {
	TOOL = 1,      /* Massif's own: repeated in desc: */
	POWER = 2,     /* only powers of two */
	NOT_EMPTY = 4,
	SEPARATE = 8,  /* the value may be the next word */
	EVERYDAY = 16, /* in the short help */
	PERCENT = 32,  /* "%" may follow */
};

struct option_row {
	const char *name;
	char letter; /* 0 = none */
	uint8_t type, flags; /* enum option_type, enum option_flag */
	size_t offset;
	bool has_range;
	double min, max; /* alternative names */
	uint32_t implied; /* MAY_NUMBER: without a value */
	const char *const *choices;
	const char *initial; /* NULL = zero */
	const char *value;   /* as shown in the help; NULL = no value */
	const char *text;
};

/* A row without a name is a heading in the help. */
extern const struct option_row option_rows[];
extern const size_t option_row_count;

/*
 * The kind of value for @row, as in "--depth takes a whole number from 1 to 200"; the caller frees
 * it.
 */
char *option_takes(const struct option_row *row);

void options_print_help(FILE *file, enum help_mode mode);
void options_print_version(FILE *file);

/*
 * Options of Valgrind's core without a field here, which scripts pass along with Massif's. They are
 * silently accepted if they would not change the profile, and refused with a reason if they request
 * something that ptmem does not do.
 */

enum core_answer { CORE_UNKNOWN, CORE_TAKEN, CORE_BAD_VALUE, CORE_REFUSED };

/*
 * How to treat --NAME=VALUE (@name has @length characters; @value NULL: none given). *why_out for
 * the last two answers: what it takes ("yes or no"), or why it is refused; static.
 */
enum core_answer core_option_check(const char *name, size_t length, const char *value,
				   const char **why_out);

/* Whether @letter is a short option of Valgrind that is silently accepted. */
bool core_option_is_letter(char letter);

/*
 * Checks of options against one another.
 *
 *	no effect, on the command line          an error; a warning for Valgrind's options that
 *	                                        it accepts silently, too
 *	no effect, in ptmemrc or PTMEM_OPTS     no message: defaults are for all runs
 *	two that cannot be combined             an error, or the one on the command line wins
 */

struct options;

/* 0, or -EINVAL after one line on stderr. */
int option_check(struct options *o);

/*
 * The command line of ptmem, and the two places read before it: ~/.config/ptmem/ptmemrc and
 * PTMEM_OPTS. Later options win.
 *
 * One table (option_table.c) drives parsing, defaults and --help; tests compare the man page and
 * the shell completions with it. A new option is one row there and one field of struct options.
 */

/*
 * Parses ptmemrc, PTMEM_OPTS and argv[1..] into *out. 0, or -EINVAL after one line on stderr that
 * names the option and what it takes; then nothing must be freed. @argv must outlive @out.
 */
int options_parse(int argc, char **argv, struct options *out);
void options_deinit(struct options *o);

#endif
