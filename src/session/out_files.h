/*
 * Checks all files that a run writes before the program starts: that their names can be expanded,
 * that no two are the same file, that none is an input, and that they can be written.
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
 * What @path is to @run already: "the program", or the option whose file it is of any process that
 * is profiled now; NULL: nothing.
 */
const char *out_files_find_use(struct run *run, const char *path);

/*
 * Checks that all files can be created: 0, or -errno after a message. A FIFO or a device is not
 * opened.
 */
int out_files_check_places(struct run *run);

#endif
