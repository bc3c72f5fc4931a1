/* Labels for the call sites of a picture: "fill", "(t.cpp:8)". No two sites have the same label. */
#ifndef PTMEM_REPORT_MASSIF_LABELS_H
#define PTMEM_REPORT_MASSIF_LABELS_H

#include "report/massif_merged.h"
#include "report/massif_sites.h"

/* Labels the @out->count sites; @node: by site, of the merged tree. */
void massif_labels_set(const struct massif_merged *m, const uint32_t *node,
		       struct massif_sites *out);

#endif
