/* Values of /proc/PID/status: doc/memusage.md 6.1, 6.3. Pure functions of text. */
#ifndef PTMEM_STATUS_FILE_H
#define PTMEM_STATUS_FILE_H

#include "base/types.h"

/* In the default order, then as in the kernel. */
enum status_field {
	STATUS_VMPEAK, STATUS_VMSIZE, STATUS_VMHWM, STATUS_VMRSS,
	STATUS_VMLCK, STATUS_VMPIN, STATUS_VMDATA, STATUS_VMSTK, STATUS_VMEXE, STATUS_VMLIB,
	STATUS_VMPTE, STATUS_VMSWAP, STATUS_RSSANON, STATUS_RSSFILE, STATUS_RSSSHMEM,
	STATUS_THREADS,
	/* not in the file: the moment, ns */
	STATUS_MONOTONIC, STATUS_REALTIME, STATUS_FIELDS,
};

#define STATUS_NONE UINT64_MAX /* the file had no such line */

struct status_values {
	uint64_t value[STATUS_FIELDS]; /* KiB, a number of threads, ns; or STATUS_NONE */
	char state;                    /* R, S, Z, ...; 0 = none */
};

extern const char *const status_field_names[STATUS_FIELDS];

/* The field with the name of @size bytes, as in status_field_names; STATUS_FIELDS if unknown. */
enum status_field status_field_find(const char *name, size_t size);

#define STATUS_BIT(field) (1u << (field))
#define STATUS_ALL (STATUS_BIT(STATUS_MONOTONIC) - 1) /* of the file */

/*
 * Parses @size bytes of @text, which need not be NUL-terminated, until all fields of @wanted
 * (STATUS_BITs) are found; later fields stay STATUS_NONE. Malformed lines are ignored.
 */
void status_parse(const char *text, size_t size, uint32_t wanted, struct status_values *out);

#endif
