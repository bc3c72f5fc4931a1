/*
 * Writes JSON in one pass. Hides: commas, quotes, escapes, which bracket closes. Where lines begin
 * is up to the caller.
 *
 *	struct json_writer w = {.out = out};
 *	json_write_open(&w, NULL, '{');
 *	json_write_text(&w, "command", "a.out");
 *	json_write_open(json_write_line(&w, 0), "sizes", '[');
 *	json_write_number(&w, NULL, 16);
 *	json_write_number(&w, NULL, 32);
 *	json_write_close(&w, 2);                {"command":"a.out",
 *	                                        "sizes":[16,32]}
 *
 * Values have a @name in objects, NULL in arrays. The caller checks the stream for errors.
 */
#ifndef PTMEM_BASE_JSON_WRITE_H
#define PTMEM_BASE_JSON_WRITE_H

#include <stdio.h>

#include "base/types.h"

/* What becomes of text that is not printable UTF-8. */
enum json_escape {
	JSON_FOR_PAGES, /* as by text_clean; "<" is escaped: it can be part of an HTML page */
	JSON_SHOWN,     /* as by text_clean */
	JSON_EXACT,     /* controls and what utf8_unseen knows are escaped, invalid bytes U+FFFD */
};

/* Zeroed but for these, it is at the beginning of a document. */
struct json_writer {
	FILE *out;
	bool is_spaced; /* blanks after commas and colons; may change at any time */
	enum json_escape escape;
	/* private */
	bool has_value;          /* at this level: the next one comes after a comma */
	bool begins_line;        /* the next thing is on a new line of that indentation */
	unsigned indent;
	unsigned depth;
	uint64_t arrays;         /* a bit for each level */
};

/* @bracket: '{' or '['. Nesting: at most 64. */
void json_write_open(struct json_writer *w, const char *name, char bracket);
void json_write_close(struct json_writer *w, unsigned levels);

/* The next value or closing bracket begins a line, after @indent blanks. Returns @w. */
struct json_writer *json_write_line(struct json_writer *w, unsigned indent);

void json_write_text(struct json_writer *w, const char *name, const char *text); /* NULL: null */
void json_write_text_n(struct json_writer *w, const char *name, const char *text, size_t size);
void json_write_bool(struct json_writer *w, const char *name, bool value);
void json_write_number(struct json_writer *w, const char *name, uint64_t value);

/* Any other value, which @format makes. */
void json_write_format(struct json_writer *w, const char *name, const char *format, ...)
	ATTR_PRINTF(3, 4);

/* The caller writes the value itself: to w->out. */
void json_write_name(struct json_writer *w, const char *name);

/*
 * json_write_numbers(w, {"bytes", 1}, {"blocks", 2}): members of an object.
 * json_write_record(w, "sum", {"bytes", 1}, {"blocks", 2}): an object that has only these.
 */
struct json_number {
	const char *name;
	uint64_t value;
};

#define json_write_numbers(w, ...) \
	json_write_each((w), (const struct json_number[]){__VA_ARGS__, {NULL, 0}})
#define json_write_record(w, name, ...)                                                    \
	json_write_all((w), (name), (const struct json_number[]){__VA_ARGS__, {NULL, 0}})

/* Used by these. @number ends with an element without a name. */
void json_write_each(struct json_writer *w, const struct json_number *number);
void json_write_all(struct json_writer *w, const char *name, const struct json_number *number);

#endif
