/*
 * What the user says about paths: --my-code and --not-my-code. A pattern (base/wildcard.h) without
 * a '/' is compared with the last part of a path. Source file and object are both compared; of the
 * patterns that match, the last one decides. The report's page has the same rule in my_code.js.
 */
#ifndef PTMEM_SYMBOLS_MY_CODE_H
#define PTMEM_SYMBOLS_MY_CODE_H

#include "base/types.h"
#include "base/vec.h"

enum my_code_owner { MY_CODE_UNKNOWN, MY_CODE_MINE, MY_CODE_NOT_MINE };

/* Zeroed = no patterns. */
struct my_code {
	VEC(char *) rule; /* '+' (mine) or '-' and the pattern, in the order given; owned */
};

#define MY_CODE_META "my_code" /* the key of a rule in recordings, one for each */

/* Adds "+PATTERN" or "-PATTERN"; ignores anything else, which a damaged file may have. */
void my_code_add(struct my_code *m, const char *rule);
void my_code_deinit(struct my_code *m);

/* @m, @source, @object: may be NULL, unknown. */
enum my_code_owner my_code_find(const struct my_code *m, const char *source, const char *object);

#endif
