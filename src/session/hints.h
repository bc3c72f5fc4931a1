/* Hints for the user if a profile may not be what was expected. */
#ifndef PTMEM_HINTS_H
#define PTMEM_HINTS_H

#include <stdbool.h>

struct largest;
struct session;

/* Whether @path is an interpreter of Python, or its library. */
bool hints_is_python(const char *path);

/* Warns if the program just started by @s runs without the privileges of its file. */
void hints_at_start(const struct session *s);

/* Called at the end, after the summary. */
void hints_at_end(const struct session *s, const struct largest *largest);

#endif
