/* Whether a massif file holds estimates: its "desc:" names ptmem's option --heap-sample then. */
#ifndef PTMEM_REPORT_MASSIF_SAMPLING_H
#define PTMEM_REPORT_MASSIF_SAMPLING_H

#include "report/massif_file.h"

/* The mean distance of samples in bytes; 0: the numbers are exact. */
uint64_t massif_sampling_interval(const struct massif_file *file);

#endif
