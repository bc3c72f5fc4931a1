/*
 * The command line of ptmem, and the two places read before it: ~/.config/ptmem/ptmemrc and
 * PTMEM_OPTS. Later options win. One table (option_table.c) drives parsing, defaults, --help
 * and the shell completions; tests compare the man page with it. A new option is one row there and
 * one field of struct options.
 */
#ifndef PTMEM_CLI_COMMAND_LINE_H
#define PTMEM_CLI_COMMAND_LINE_H

#include <stdio.h>

#include "base/option_row.h"
#include "base/types.h"
#include "session/options.h"

/* The fields are those of struct options; the row's index is the bit in `given`. */
extern const struct option_table options_table;

void options_print_help(FILE *file, enum help_mode mode);
void options_print_version(FILE *file);

/*
 * Options of Valgrind's core without a field here, which scripts pass along with Massif's. They are
 * silently accepted if they would not change the profile, and refused with a reason if they request
 * something that ptmem does not do.
 */

enum core_answer { CORE_UNKNOWN, CORE_TAKEN, CORE_BAD_VALUE, CORE_REFUSED };

/*
 * How to treat --NAME=VALUE (@name has @length characters; @value NULL: none given). *why_out for
 * the last two answers: what it takes ("yes or no"), or why it is refused; static.
 */
enum core_answer core_option_check(const char *name, size_t length, const char *value,
				   const char **why_out);

/* Whether @letter is a short option of Valgrind that is silently accepted. */
bool core_option_is_letter(char letter);

/*
 * Checks of options against one another.
 *
 *	no effect, on the command line          an error; a warning for Valgrind's options that
 *	                                        it accepts silently, too
 *	no effect, in ptmemrc or PTMEM_OPTS     no message: defaults are for all runs
 *	two that cannot be combined             an error, or the one on the command line wins
 */

/* 0, or -EINVAL after one line on stderr. */
int option_check(struct options *o);

/*
 * Parses ptmemrc, PTMEM_OPTS and argv[1..] into *out. 0, or -EINVAL after one line on stderr that
 * names the option and what it takes; then nothing must be freed. @argv must outlive @out.
 */
int options_parse(int argc, char **argv, struct options *out);
void options_deinit(struct options *o);

#endif
