/*
 * The table of options: each option's field in struct options, the values it takes, and its text in
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
	SAMPLE,  /* uint32_t, the value may be left out: 100 */
	PERIOD,  /* uint32_t, or no: 0 */
	SIZE,    /* uint64_t, K, M or G may follow */
	DECIMAL, /* double */
	CHOICE,  /* an enum, numbered as the choices are */
	SET,     /* uint32_t: a bit for each of the choices, which are separated by commas */
	TEXT,    /* const char * */
	TEXTS,   /* struct option_strings */
	SECONDS, /* double; the value may be left out */
	MAY_TEXT, /* const char *; the value may be left out: "" */
	PIDS,    /* pid and pid_count */
	HELP,    /* enum help_mode; the value may be left out */
};

enum option_flag {
	TOOL = 1,      /* Massif's own: repeated in desc: */
	POWER = 2,     /* only powers of two */
	NOT_EMPTY = 4,
	SEPARATE = 8,  /* the value may be the next word, too */
	EVERYDAY = 16, /* in the short help */
};

struct option_row {
	const char *name;
	char letter; /* 0 = none */
	uint8_t type, flags; /* enum option_type, enum option_flag */
	size_t offset;
	bool has_range;
	double min, max; /* both are accepted */
	const char *const *choices;
	const char *initial; /* NULL = zero */
	const char *value;   /* as the help shows it; NULL = no value */
	const char *text;
};

/* A row without a name is a heading of the help. */
extern const struct option_row option_rows[];
extern const size_t option_row_count;

/* What @row takes, as in "--depth takes a whole number from 1 to 200"; the caller frees it. */
char *option_takes(const struct option_row *row);

void options_print_help(FILE *file, enum help_mode mode);
void options_print_version(FILE *file);

#endif
