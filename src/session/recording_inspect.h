/* The result of --inspect in a recording. */
#ifndef PTMEM_RECORDING_INSPECT_H
#define PTMEM_RECORDING_INSPECT_H

#include <stdint.h>

#include "output/inspect_report.h"

struct recording;
struct path_pins;

/*
 * The tables of an inspection alone, which was @time_ms after the beginning of the profile; the
 * caller frees it. @pins: of path_pins_init.
 */
struct recording *recording_inspect_new(const struct inspect_title *t,
					const struct inspect_report *r,
					const struct path_pins *pins, uint64_t time_ms);

#endif
