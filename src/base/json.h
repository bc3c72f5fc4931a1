/*
 * JSON: strings for output, and a document as a tree. What is read is untrusted: nesting is
 * limited, and memory is proportional to the text.
 */
#ifndef PTMEM_BASE_JSON_H
#define PTMEM_BASE_JSON_H

#include <stddef.h>
#include <stdio.h>

#include "base/types.h"

/*
 * A JSON document as a tree. The input is untrusted: nesting is limited, and memory is proportional
 * to the text.
 */

enum json_kind { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_TEXT, JSON_ARRAY, JSON_OBJECT };

struct json {
	enum json_kind kind;
	double number;          /* JSON_BOOL: 0 or 1 */
	char *text;             /* JSON_TEXT; owned */
	char *name;             /* key of a member of an object; owned */
	struct json *part;      /* elements or members in order; owned */
	size_t count, capacity;
};

/* Parses @text (@size bytes). NULL if it is not valid JSON. Free the result with json_free. */
struct json *json_read(const char *text, size_t size);
void json_free(struct json *j);

/* Return NULL, 0 or "" for missing values. @j may be NULL. */
const struct json *json_member(const struct json *j, const char *name);
double json_number(const struct json *j, const char *name);
const char *json_text(const struct json *j, const char *name);

/* Strings in JSON documents. */

/*
 * The first @size bytes of @s, which may be anything, as a JSON string with its quotes. "<" is
 * escaped, so that the document can be part of an HTML page.
 */
void json_put_text(FILE *out, const char *s, size_t size);

#endif
