/*
 * Text for people: names that come from foreign files, made fit to be shown.
 * Lengths are characters (code points) of UTF-8, which is what width depends on.
 */
#ifndef PTMEM_BASE_TEXT_H
#define PTMEM_BASE_TEXT_H

#include "base/types.h"

/*
 * A copy of the first @size bytes of @s that every reader of UTF-8 takes: control
 * characters become '?', bytes that are no UTF-8 become U+FFFD. The caller frees it.
 */
char *text_clean(const char *s, size_t size);

/* Characters of @s, which is valid UTF-8. */
size_t text_length(const char *s);

/* @s in at most @max characters, the last of them an ellipsis if it is cut. The caller frees it. */
char *text_cut(const char *s, size_t max);

/*
 * @name in at most @max characters, and in as good a form as fits: whole; with
 * parameters, then template arguments left out, "f<...>(...)"; without leading scopes;
 * cut with an ellipsis at the end. "" if @max is 0. The caller frees it.
 */
char *text_shorten(const char *name, size_t max);

#endif
