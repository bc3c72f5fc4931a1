/*
 * Standard input, output and error that were closed before ptmem started.
 * Their numbers would go to the first files that we open, and messages into those.
 */
#ifndef PTMEM_BASE_STANDARD_FILES_H
#define PTMEM_BASE_STANDARD_FILES_H

/*
 * Occupies those of the descriptors 0, 1 and 2 that are closed, by something that cannot be
 * read or written, so that using them still fails. Programs that we execute find them
 * closed, as they were. To be called first in main.
 */
void standard_files_hold(void);

#endif
