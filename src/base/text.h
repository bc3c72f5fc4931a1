/*
 * Text for display, where names from untrusted files are sanitized and shortened, and as part of
 * CSV and XML. Lengths count characters (UTF-8 code points), which approximates display width.
 */
#ifndef PTMEM_BASE_TEXT_H
#define PTMEM_BASE_TEXT_H

#include <stdio.h>

#include "base/types.h"

/*
 * Text for display: names from untrusted files are sanitized. Lengths count characters (UTF-8 code
 * points), which approximates display width.
 */

/*
 * A valid UTF-8 copy of the first @size bytes of @s that makes everything visible: control
 * characters become '?', invalid bytes U+FFFD. Invisible characters, and those that change the
 * display order, become "\u202E". The caller frees it.
 */
char *text_clean(const char *s, size_t size);

/*
 * Writes @size bytes of a name to a line of a file whose format leaves names as they are: one with
 * characters that would forge lines, or act on a terminal, is written as text_clean makes it.
 */
void text_put_name(FILE *out, const char *s, size_t size);

/* In any locale. */
static inline bool text_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Characters of @s, which is valid UTF-8. */
size_t text_length(const char *s);

/*
 * @s shortened to at most @max characters, with an ellipsis at the end if it is cut. The caller
 * frees it.
 */
char *text_cut(const char *s, size_t max);

/* Takes ownership of @s. Returns it with "..." for each ellipsis unless the locale uses UTF-8. */
char *text_for_locale(char *s);

/*
 * @name in the best form that fits in @max characters: complete; without parameters, then without
 * template arguments, "f<...>(...)"; without leading scopes; only the last identifier; cut with an
 * ellipsis. "" if @max is 0. The caller frees it.
 */
char *text_shorten(const char *name, size_t max);

/*
 * "NAME (FILE:LINE)" or "NAME (in OBJECT)" in at most @max characters. Shortens the name and keeps
 * the location if there is room for it; "FILE:LINE" is more important than any name. The caller
 * frees it.
 */
char *text_shorten_site(const char *site, size_t max);

/* The same for a column of a text, in the characters of the locale. */
char *text_site_label(const char *site);

/* Where " (FILE:LINE)" or " (in OBJECT)" begins in @site; its size if there is none. */
size_t text_site_location(const char *site);

/*
 * The start of the qualified name in the function name @name, after a template's return type ("void
 * std::f<int>(int)").
 */
const char *text_qualified(const char *name);

bool text_begins_with(const char *text, const char *start);
/* The part of @text after @start; NULL if it does not begin with that. */
const char *text_after(const char *text, const char *start);
bool text_ends_in(const char *text, const char *end);
/* Whether it is in @list, which NULL ends before @count elements, if at all. */
bool text_is_among(const char *text, const char *const *list, size_t count);

/* For qsort(): strcmp of strings, or of structs whose first member is one. */
int text_compare(const void *a, const void *b);

/* The part of @path after the last slash; all of it if there is none. */
const char *text_base_name(const char *path);

/* The length of @name without the suffix of a compiler's clone: " [clone .constprop.0]". */
size_t text_size_without_clone(const char *name);

/*
 * The last identifier of a function's name, without parameters and arguments. The caller frees it.
 */
char *text_identifier(const char *name);

/*
 * Whether the function @name is the @size bytes at @wanted: with or without its parameters, and
 * with or without the type that templates return, "char* fill<char>(int)".
 */
bool text_is_function(const char *name, const char *wanted, size_t size);

/* Text in comma-separated values. */

/*
 * Begins a quoted field that begins with @text, which follows. Spreadsheets take one that begins
 * with "=", "+", "-" or "@" for a formula: such a field begins with "'".
 */
void csv_begin(FILE *out, const char *text);
/* Writes @text as part of a quoted field. */
void csv_put_quoted(FILE *out, const char *text);

/*
 * Text in XML documents.
 */

/* Writes @s, valid UTF-8 without control characters, as text or attribute value. */
void xml_put_text(FILE *out, const char *s);

#endif
