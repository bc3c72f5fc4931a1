/* Whether a massif file contains estimates: then its "desc:" has ptmem's option --heap-sample. */
#ifndef PTMEM_REPORT_MASSIF_SAMPLING_H
#define PTMEM_REPORT_MASSIF_SAMPLING_H

#include "report/massif_file.h"

/* The mean distance of samples in bytes; 0: exact. */
uint64_t massif_sampling_interval(const struct massif_file *file);

#endif
