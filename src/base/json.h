/*
 * A JSON document as a tree. The input is untrusted: nesting is limited, and memory is proportional
 * to the text.
 */
#ifndef PTMEM_BASE_JSON_H
#define PTMEM_BASE_JSON_H

#include <stddef.h>

#include "base/types.h"

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

#endif
