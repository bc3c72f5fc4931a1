/* The notes of a core file: registers, mapped files, command line. */
#ifndef PTMEM_INSPECT_CORE_NOTES_H
#define PTMEM_INSPECT_CORE_NOTES_H

#include "inspect/core_file.h"

/* Parses the notes at @notes (@size bytes). Malformed ones are skipped. */
void core_notes_read(const uint8_t *notes, size_t size, struct core_file *out);

/* Calls @fn for each note until it returns false. @desc has @size bytes. */
typedef bool core_note_fn(void *ctx, uint32_t type, const uint8_t *desc, size_t size);
void core_notes_each(const uint8_t *notes, size_t size, core_note_fn *fn, void *ctx);

#endif
