/* Leaks as JSON. */
#ifndef PTMEM_OUTPUT_LEAKS_JSON_H
#define PTMEM_OUTPUT_LEAKS_JSON_H

#include <stdio.h>

#include "output/leaks.h"

/*
 * JSON, one object:
 *
 *	{"pid": N, "command": TEXT, "age": SECONDS, "bytes": N, "blocks": N,
 *	 "younger": {"bytes": N, "blocks": N},                  what "age" leaves out
 *	 "suppressed": [{"name": TEXT, "bytes": N, "blocks": N}, ...],    only with suppressions
 *	 "kinds": {KIND: {"bytes": N, "blocks": N}, ...},       only after a leak check
 *	 "sites": [{"kind": KIND or absent, "bytes": N, "blocks": N,
 *	            "indirect": {"bytes": N, "blocks": N},      if there are any
 *	            "oldest": SECONDS, "youngest": SECONDS,
 *	            "holders": [{"bytes": N, "blocks": N, "chain": [TEXT, ...]}, ...], if known
 *	            "stack": [{"address": "0x..", "function": TEXT,
 *	            "file": TEXT, "line": N, "object": TEXT}, ...]}, ...]}
 *
 * With samples, "bytes" and "blocks" are estimates: each "bytes" is followed by "error", its
 * standard error, and the object begins with "heap_sample": BYTES.
 *
 * Stacks are innermost first; unknown values are left out; inlined functions have their own frames
 * with the same address. Text is valid UTF-8. The caller checks the stream for errors.
 */
void leaks_write_json(FILE *file, const struct leaks *l);

#endif
