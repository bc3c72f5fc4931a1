/*
 * The command line of ptmem, and the two places from which options come before
 * it: ~/.config/ptmem/ptmemrc and PTMEM_OPTS. Later ones win.
 *
 * One table (option_table.c) drives parsing, defaults and --help; tests hold the man
 * page and the shell completions against it. A new option is one row there and
 * one field of struct options.
 */
#ifndef PTMEM_OPTIONS_PARSE_H
#define PTMEM_OPTIONS_PARSE_H

#include "session/options.h"

/*
 * Reads ptmemrc, PTMEM_OPTS and argv[1..]. *out is overwritten. 0, or -EINVAL
 * after one line on stderr that names the option and what it takes; nothing is
 * to be released then. @argv must outlive @out.
 */
int options_parse(int argc, char **argv, struct options *out);
void options_deinit(struct options *o);

#endif
