/*
 * Source files of programs as a member of the JSON of their recordings, for the page
 * (--embed-sources): those of the programs' own code.
 */
#ifndef PTMEM_RECORDING_EMBEDDED_SOURCES_H
#define PTMEM_RECORDING_EMBEDDED_SOURCES_H

#include <stddef.h>

struct option_strings;
struct recording;

/*
 * ",\n\"sources\":{...}": the source files of the own code of @count programs. Those that are
 * missing, too large, or by their names no sources have a problem instead of lines, and there is a
 * warning. @dirs: where files are looked for that are not where the compiler saw them. The caller
 * frees it.
 */
char *embedded_sources_json(const struct recording *const *r, size_t count,
			    const struct option_strings *dirs);

#endif
