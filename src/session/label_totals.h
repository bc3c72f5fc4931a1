/*
 * What texts of labels use: rows of the summary, of a process and of all. Hides how the sums of all
 * processes are kept; labels.h has their types.
 */
#ifndef PTMEM_SESSION_LABEL_TOTALS_H
#define PTMEM_SESSION_LABEL_TOTALS_H

#include "session/labels.h"

#define LABEL_TEXTS_SHOWN 5u

/* The larger one comes first; 0: in use and allocated is the same. */
int label_use_compare(const struct label_use *x, const struct label_use *y);
void label_use_add(struct label_use *to, const struct label_use *from);
/* A row with @name and @text; @use->held is a part of @all. */
void label_use_print(const char *name, const struct label_use *use, uint64_t all, const char *text);

uint64_t label_text_hash(uint32_t label, const char *text);
/* The total of @text, of option @label. Of too many texts the rest is "other". */
struct label_total *label_totals_get(struct label_totals *to, uint32_t label, const char *text);

#endif
