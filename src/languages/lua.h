/*
 * Lua 5.3.3 to 5.4.8 from outside: struct language of interpreter.h.
 *
 *	stack -> lua_State -> CallInfos -> closures -> Protos -> names, files, lines
 *
 * No variable leads to a lua_State, of which each coroutine has one. But a coroutine that runs is
 * called by luaD_rawrunprotected, which keeps a struct lua_longjmp on the native stack, and the
 * state in its own frame; the state's errorJmp leads to the former. So all states that run in a
 * thread are found by looking at the words of its stack, and the one whose errorJmp is the
 * innermost is the one that runs now. Pads, to which ptmem says which states were found, see
 * whether these are still the ones: each frame of luaD_rawrunprotected has the errorJmp of the
 * state, or an earlier one of it.
 *
 * A state's CallInfos lead from the function that runs to its callers; those of the coroutine that
 * has resumed it follow. A run of the loop (luaV_execute) begins with one that has the flag FRESH.
 * A function is identified by its Proto, which all its closures share.
 *
 * Offsets come from a table by version, since Lua publishes none.
 */
#ifndef PTMEM_LANGUAGES_LUA_H
#define PTMEM_LANGUAGES_LUA_H

#include "languages/interpreter.h"

#define LUA_RELEASE(major, minor, patch) \
	((uint32_t)(major) << 16 | (uint32_t)(minor) << 8 | (uint32_t)(patch))

/* Where instructions have their parts, and which are of interest. */
struct lua_code {
	uint8_t op_bits, b_shift, c_shift, jump_shift, jump_bits;
	uint8_t move, get_upvalue, get_global, get_index, get_field, self;
	uint8_t load_nil, jump, call, tail_call, iterate;
	uint64_t without_result[2]; /* do not set register A: by number */
};

/* Offsets that versions differ in. */
struct lua_layout {
	uint32_t first, last; /* LUA_RELEASE */
	uint16_t status, stack_end, stack, jump, base; /* in a lua_State */
	uint16_t position, flags; /* in a CallInfo */
	/* bits of flags; unnamed: of a caller that runs a hook or a finalizer */
	uint16_t fresh, tail, unnamed;
	/* of a Proto: its tag; in it */
	uint8_t proto;
	uint16_t first_line, constants, code, lines, far_lines, locals, upvalues, source;
	const struct lua_code *instructions;
};

struct lua {
	struct lua_layout layout;
	struct virtual_layout frames;
	taddr_t version_text; /* lua_ident */
	/* luaD_rawrunprotected, or what may be it */
	struct addr_range runner[8];
	uint32_t runners;
};

/* Sets the layouts of @release. False: it is not known. For tests. */
bool lua_layout_use(struct lua *l, uint32_t release);

/* The TString at @addr; NULL if it is none. Visible; the caller frees it. */
char *lua_read_text(const struct language_memory *m, taddr_t addr);

/* In a value, a closure, a TString. */
enum { LUA_VALUE_TAG = 8, LUA_TAG_CLOSURE = 0x46, LUA_CLOSURE_PROTO = 24, LUA_TEXT_DATA = 24 };

/* The Proto of the function in the value at @value; 0: it is none of Lua's. */
taddr_t lua_proto_in(const struct language_memory *m, taddr_t value);

/* How the function at @ci was called, as Lua's messages have it; NULL: that is not known. */
char *lua_called_name(const struct lua *l, const struct language_memory *m, taddr_t ci);

/* Reads the table of lines of @out, whose Proto and code are known. */
void lua_read_lines(const struct lua *l, const struct language_memory *m,
		    struct virtual_function *out);

#endif
