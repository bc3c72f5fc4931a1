/*
 * Tables of options, one row each. From a row a value is parsed, checked and stored into a field;
 * from the table --help is printed, and the completions of the shells are made
 * (completions/generate.c). Each program has its own messages about bad values, and decides
 * which words are options. Tables: cli/option_table.c, report/report_options.c, memusage/main.c.
 */
#ifndef PTMEM_BASE_OPTION_ROW_H
#define PTMEM_BASE_OPTION_ROW_H

#include <stdio.h>

#include "base/types.h"

enum option_type {
	OPT_FLAG,    /* bool, no value */
	OPT_YES_NO,  /* bool */
	OPT_NUMBER,  /* uint32_t */
	OPT_SIZE,    /* uint64_t, with K, M or G */
	OPT_DECIMAL, /* double */
	OPT_TIME,    /* double: seconds, with s, m, h or d */
	OPT_CHOICE,  /* uint32_t or an enum: the index of the choice */
	OPT_SET,     /* uint32_t: one bit for each of the comma-separated choices */
	OPT_TEXT,    /* const char *, not copied */
	OPT_TEXTS,   /* struct option_strings */
	OPT_PARSED,  /* by a function of the row */
	OPT_PIDS,    /* the program parses it itself */
};

enum option_flag {
	OPT_TOOL = 1,        /* ptmem: Massif's own, repeated in desc: */
	OPT_EVERYDAY = 2,    /* ptmem: in the short help */
	OPT_SEPARATE = 4,    /* the value may be the next word */
	OPT_REPEATABLE = 8,  /* each use adds something, as those of OPT_TEXTS do */
	OPT_NOT_EMPTY = 16,
	OPT_POWER = 32,      /* only powers of two */
	OPT_PERCENT = 64,    /* "%" may follow */
	OPT_OR_NO = 128,     /* or "no", which is 0 */
	OPT_DIGITS = 256,    /* neither spaces nor a sign before a number */
	OPT_LISTED = 512,    /* the help begins with the choices */
	OPT_OR_AUTO = 1024,  /* or "auto", which is option_row.absent */
};

struct option_row {
	const char *name; /* without hyphens; NULL: a heading in the help */
	char letter; /* 0 = none */
	uint8_t type; /* enum option_type */
	uint16_t flags; /* enum option_flag */
	size_t offset; /* of the field */
	bool has_range;
	double min, max;
	/* of a number whose value is optional or "auto": what it is then, in any range */
	double absent;
	/* an array whose elements begin with a name; the last one has none */
	const void *choices;
	size_t choice_size;
	/* of OPT_PARSED; false: a bad value. @text: NULL if it is optional and not given */
	bool (*parse)(const char *text, void *field);
	const char *initial; /* parsed like a given value; NULL = none */
	const char *value;   /* as shown in the help, "[=...]": optional; NULL = takes none */
	const char *text;    /* for the help; "\n" begins a line */
	const char *brief;   /* for completions, if the help needs the row above; NULL = text */
	const char *takes;   /* for messages about bad values; NULL: by the type */
};

#define OPTION_RANGE(low, high) .has_range = true, .min = (low), .max = (high)
#define OPTION_CHOICES(array) .choices = (array), .choice_size = sizeof(*(array))

struct option_table {
	const struct option_row *row;
	size_t count;
};

/* The values of a repeatable option in the given order; the strings are not owned. */
struct option_strings {
	const char **data;
	size_t count, capacity;
};

/* Takes one value of an option; NULL, or what is wrong with it. */
typedef const char *option_take_fn(void *ctx, const char *text);
/*
 * Passes each line of the file at @path to @take, without the spaces around it and without a
 * comment, which begins with '#', at the beginning of the line or after a space; empty lines are
 * skipped. 0, or -errno after a message with the file's name and the
 * line.
 */
int option_read_lines(const char *path, option_take_fn *take, void *ctx);

/* By the @length bytes at @name, or by letter; NULL: none. */
const struct option_row *option_find(const struct option_table *t, const char *name, size_t length);
const struct option_row *option_find_letter(const struct option_table *t, char letter);

/* Whether @row takes a value that may be left out. */
bool option_is_optional(const struct option_row *row);

/* The name of choice @i; NULL: there are no more. */
static inline const char *option_choice(const struct option_row *row, size_t i)
{
	return *(const char *const *)((const char *)row->choices + i * row->choice_size);
}

/* The kind of value for @row, as in "--depth takes a whole number from 1 to 200"; to be freed. */
char *option_takes(const struct option_row *row);

/*
 * Sets @row's field of @object to @text, which must live as long as that (NULL: no value given).
 * Returns false for a bad value; the field is undefined then.
 */
bool option_set(const struct option_row *row, const char *text, void *object);

/* Sets the fields that have an initial value. */
void option_set_initial(const struct option_table *t, void *object);

/* How rows of the help are laid out: "  -p, --pid=PID   text". */
struct option_layout {
	const char *indent, *after_letter, *no_letter;
	int column;      /* of the text */
	bool breaks;     /* what is too long for its column has a line of its own */
};

void option_print(FILE *file, const struct option_row *row, const struct option_layout *layout);
/* All of @t, with the headings. */
void option_print_all(FILE *file, const struct option_table *t, const struct option_layout *layout);

#endif
