/*
 * What the call sites of a picture are called: "fill", "(t.cpp:8)". No two sites share a label.
 */
#ifndef PTMEM_REPORT_MASSIF_LABELS_H
#define PTMEM_REPORT_MASSIF_LABELS_H

#include "report/massif_merged.h"
#include "report/massif_sites.h"

/* Names the @out->count sites; @node: of the merged tree, by site. */
void massif_labels_set(const struct massif_merged *m, const uint32_t *node,
		       struct massif_sites *out);

#endif
