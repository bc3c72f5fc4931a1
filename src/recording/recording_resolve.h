/*
 * Names for a recording of a program that runs. Its frames have what is quickly found, while the
 * program waits: a function of a symbol table. Whoever reads it has time for the rest: source lines
 * and inlined functions, from the files of the program.
 */
#ifndef PTMEM_RECORDING_RECORDING_RESOLVE_H
#define PTMEM_RECORDING_RECORDING_RESOLVE_H

#include "recording/recording.h"
#include "symbols/filter.h"

struct name_resolver;

/* Both stay the caller's; nothing else has asked @symbols for names. */
struct name_resolver *name_resolver_new(struct symbols *symbols, const struct filter *filter);
void name_resolver_free(struct name_resolver *l);

/*
 * Gives the frames of @r the names that a complete recording has. The files are those that process
 * @pid sees, or, once it is gone, those of the same path here. A file without the build-id that is
 * recorded is another one, and is not used.
 */
void recording_resolve(struct name_resolver *l, struct recording *r, uint32_t pid);

#endif
