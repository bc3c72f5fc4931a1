/*
 * One character of UTF-8, in text that others have written. Hides the encoding, and which
 * characters are invisible or change the order of others.
 */
#ifndef PTMEM_BASE_UTF8_H
#define PTMEM_BASE_UTF8_H

#include "base/types.h"

/* Bytes of the character at @s, 1 .. 4; 0 if it is no valid UTF-8 (RFC 3629, section 4). */
size_t utf8_character(const char *s, size_t size);

/*
 * The code of the character of @n bytes at @s if it acts on what is shown, or is not seen itself,
 * as direction marks and C1 controls; else 0.
 */
uint32_t utf8_unseen(const char *s, size_t n);

#endif
