/*
 * The command line of ptmem, and the two places read before it: ~/.config/ptmem/ptmemrc and
 * PTMEM_OPTS. Later options win.
 *
 * One table (option_table.c) drives parsing, defaults and --help; tests compare the man page and
 * the shell completions with it. A new option is one row there and one field of struct options.
 */
#ifndef PTMEM_OPTIONS_PARSE_H
#define PTMEM_OPTIONS_PARSE_H

#include "session/options.h"

/*
 * Parses ptmemrc, PTMEM_OPTS and argv[1..] into *out. 0, or -EINVAL after one line on stderr that
 * names the option and what it takes; then nothing must be freed. @argv must outlive @out.
 */
int options_parse(int argc, char **argv, struct options *out);
void options_deinit(struct options *o);

#endif
