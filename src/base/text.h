/*
 * Text for people: names from untrusted files, made safe to show.
 * Lengths are characters (code points) of UTF-8, which is what width depends on.
 */
#ifndef PTMEM_BASE_TEXT_H
#define PTMEM_BASE_TEXT_H

#include "base/types.h"

/*
 * A copy of the first @size bytes of @s that every reader of UTF-8 takes, and that shows what is
 * there: control characters become '?', bytes that are no UTF-8 U+FFFD. Characters that are not
 * seen, or that change the order in which others are shown, become "\u202E". The caller frees it.
 */
char *text_clean(const char *s, size_t size);

/* Characters of @s, which is valid UTF-8. */
size_t text_length(const char *s);

/* @s in at most @max characters, the last of them an ellipsis if it is cut. The caller frees it. */
char *text_cut(const char *s, size_t max);

/* Takes over @s, and returns it with "..." for each ellipsis unless the locale is of UTF-8. */
char *text_for_locale(char *s);

/*
 * @name in at most @max characters, and in as good a form as fits: whole; with
 * parameters, then template arguments left out, "f<...>(...)"; without leading scopes; the
 * last identifier alone; cut with an ellipsis at the end. "" if @max is 0. The caller frees it.
 */
char *text_shorten(const char *name, size_t max);

/*
 * "NAME (FILE:LINE)" or "NAME (in OBJECT)" in at most @max characters: the name is shortened, the
 * location kept where there is room for it. The caller frees it.
 */
char *text_shorten_site(const char *site, size_t max);

/*
 * Where in @name, a function's, its qualified name begins: after the type that templates
 * return ("void std::f<int>(int)").
 */
const char *text_qualified(const char *name);

/* What follows the last slash of @path; all of it if nothing does. */
const char *text_base_name(const char *path);

/* The size of @name without what a compiler's clone has after it: " [clone .constprop.0]". */
size_t text_size_without_clone(const char *name);

/*
 * The last identifier of a function's name, without parameters and arguments. The caller frees it.
 */
char *text_identifier(const char *name);

#endif
