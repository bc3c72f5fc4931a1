/*
 * What identifies a frame of a stack: an address of native code, or, for a function that has no
 * code of its own or whose code was generated, a key that symbols_name gives to its name, source
 * file and line. Keys are outside of all programs' addresses, so that both can be kept, hashed and
 * written to files as one number.
 */
#ifndef PTMEM_BASE_FRAME_KEY_H
#define PTMEM_BASE_FRAME_KEY_H

#include "base/types.h"

enum frame_key_kind {
	FRAME_NATIVE, /* key: the address of the call, which is the return address minus 1 */
	FRAME_NAMED,  /* key: of a name */
};

#define FRAME_NAMED_BASE (UINT64_C(0x80) << 56)

/* The key of a name with @hash, if no other name has it. */
static inline uint64_t frame_named_key(uint64_t hash)
{
	return FRAME_NAMED_BASE | hash >> 8;
}

static inline enum frame_key_kind frame_key_kind(uint64_t key)
{
	return key >> 56 == FRAME_NAMED_BASE >> 56 ? FRAME_NAMED : FRAME_NATIVE;
}

#endif
