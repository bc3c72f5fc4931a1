/* Hints for the user if a profile may not be what was expected. */
#ifndef PTMEM_HINTS_H
#define PTMEM_HINTS_H

#include "output/call_sites.h"

struct session;

/* Warns if the program just started by @s runs without the privileges of its file. */
void hints_at_start(const struct session *s);

/* Called at the end, after the summary. @site: the @count largest call sites. */
void hints_at_end(const struct session *s, const struct call_site_sum *site, size_t count);

#endif
