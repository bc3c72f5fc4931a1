/*
 * The table of options: each option's field in struct options, its possible values, and its text in
 * the help.
 */
#ifndef PTMEM_OPTION_TABLE_H
#define PTMEM_OPTION_TABLE_H

#include <stdio.h>

#include "base/types.h"
#include "session/options.h"

enum option_type {
	FLAG,    /* bool, no value */
	MORE,    /* log_level, no value */
	LESS,    /* log_level, no value */
	YES_NO,  /* bool */
	NUMBER,  /* uint32_t */
	SAMPLE,  /* uint32_t, the value is optional: 100 */
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

#endif
