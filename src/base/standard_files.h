/*
 * Handles standard input, output and error that were closed before ptmem started. Otherwise the
 * first files that we open would get their numbers, and messages would go into those.
 */
#ifndef PTMEM_BASE_STANDARD_FILES_H
#define PTMEM_BASE_STANDARD_FILES_H

/*
 * Occupies those of the descriptors 0, 1 and 2 that are closed with a descriptor that can be
 * neither read nor written, so that their use still fails. Programs that we execute find them
 * closed again. main calls this first.
 */
void standard_files_hold(void);

#endif
