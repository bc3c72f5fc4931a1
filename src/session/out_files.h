/*
 * Checks all output files of a run before the program starts: their names can be expanded, no two
 * are the same file, none is an input, and all can be written.
 */
#ifndef PTMEM_OUT_FILES_H
#define PTMEM_OUT_FILES_H

struct options;
struct run;

/*
 * Checks the names: placeholders, and files that would overwrite each other or an input. Opens and
 * creates nothing. 0, or -EINVAL after a message.
 */
int out_files_check_names(struct options *options);

/*
 * What @run uses @path for: "the program", or the option whose file it is for any profiled process;
 * NULL: nothing.
 */
const char *out_files_find_use(struct run *run, const char *path);

/*
 * Checks that all files can be created: 0, or -errno after a message. FIFOs and devices are not
 * opened.
 */
int out_files_check_places(struct run *run);

#endif
