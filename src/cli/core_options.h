/*
 * Options of Valgrind's core without a field here, which scripts pass along with Massif's. They are
 * silently accepted if they would not change the profile, and refused with a reason if they request
 * something that ptmem does not do.
 */
#ifndef PTMEM_CORE_OPTIONS_H
#define PTMEM_CORE_OPTIONS_H

#include "base/types.h"

enum core_answer { CORE_UNKNOWN, CORE_TAKEN, CORE_BAD_VALUE, CORE_REFUSED };

/*
 * How to treat --NAME=VALUE (@name has @length characters; @value NULL: none given). *why_out for
 * the last two answers: what it takes ("yes or no"), or why it is refused; static.
 */
enum core_answer core_option_check(const char *name, size_t length, const char *value,
				   const char **why_out);

/* Whether @letter is a short option of Valgrind that is silently accepted. */
bool core_option_is_letter(char letter);

#endif
