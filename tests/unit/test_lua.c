/*
 * States of Lua 5.4 in a stack, laid out as Lua has them: memory that only looks like a state, as a
 * coroutine that is gone leaves it, hides no functions of the others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "languages/interpreter.h"
#include "languages/lua.h"

#define STACK_WORDS 128u
#define CODES 4u

/* Offsets of Lua 5.4.4, in words: the block of a state begins with LUA_EXTRASPACE. */
enum {
	STATE = 1, STATE_GLOBAL = 3, STATE_CALL = 4, STATE_STACK_END = 5, STATE_STACK = 6,
	STATE_JUMP = 11, STATE_BASE = 12,
	CALL_FUNCTION = 0, CALL_PREVIOUS = 2, CALL_POSITION = 4, CALL_WORDS = 9,
	STATE_WORDS = STATE + STATE_BASE + CALL_WORDS,
	PROTO_CODE = 8, PROTO_SOURCE = 14, PROTO_WORDS = 15,
};

struct state {
	uint64_t block[STATE_WORDS];
	uint64_t call[CALL_WORDS]; /* of its only function */
	uint64_t value[4];         /* its stack: nothing, and the function */
	uint64_t closure[4];
};

/* All memory of the program. The stack is read in parts of 512 bytes. */
struct program {
	_Alignas(512) uint64_t stack[STACK_WORDS];
	struct state real, fake;
	uint64_t global[10];
	uint64_t proto[PROTO_WORDS];
	uint32_t code[CODES];
	uint64_t source[8];
	char version[32];
};

static struct program program;

static taddr_t address(const void *p)
{
	return (taddr_t)(uintptr_t)p;
}

static bool read_program(void *ctx, taddr_t addr, void *buf, size_t size)
{
	if (addr < address(&program) || addr - address(&program) > sizeof(program) ||
	    size > sizeof(program) - (addr - address(&program)))
		return false;
	memcpy(buf, (const char *)&program + (addr - address(&program)), size);
	return true;
}

static const struct language_memory memory = {read_program, NULL};

static void set_byte(uint64_t *words, size_t at, uint8_t value)
{
	((uint8_t *)words)[at] = value;
}

/* One that runs a function of program.proto; @jump: a word of the stack, 0 = not protected. */
static void make_state(struct state *s, size_t jump)
{
	uint64_t *state = s->block + STATE, *base = state + STATE_BASE;

	memset(s, 0, sizeof(*s));
	set_byte(state, 8, 8);
	state[STATE_GLOBAL] = address(program.global);
	state[STATE_CALL] = address(s->call);
	state[STATE_STACK] = address(s->value);
	state[STATE_STACK_END] = address(s->value + ARRAY_SIZE(s->value));
	state[STATE_JUMP] = jump ? address(&program.stack[jump]) : 0;
	base[CALL_FUNCTION] = address(s->value);
	s->call[CALL_FUNCTION] = address(s->value + 2);
	s->call[CALL_PREVIOUS] = address(base);
	s->call[CALL_POSITION] = address(program.code + 1);
	s->value[2] = address(s->closure);
	set_byte(s->value + 2, LUA_VALUE_TAG, LUA_TAG_CLOSURE);
	s->closure[LUA_CLOSURE_PROTO / 8] = address(program.proto);
}

/* The stack refers to both states; the jump of what only looks like one is the innermost. */
static void make_program(void)
{
	static const char file[] = "@app.lua";

	memset(&program, 0, sizeof(program));
	set_byte(program.global, 72, 0x45);
	set_byte(program.proto, 8, 10);
	set_byte(program.proto, 24, CODES);
	set_byte(program.proto, 44, 7); /* first line */
	program.proto[PROTO_CODE] = address(program.code);
	program.proto[PROTO_SOURCE] = address(program.source);
	set_byte(program.source, 8, 4); /* a short text */
	set_byte(program.source, 11, sizeof(file) - 1);
	memcpy((char *)program.source + LUA_TEXT_DATA, file, sizeof(file));
	strcpy(program.version, "$LuaVersion: Lua 5.4.4");
	make_state(&program.real, 60);
	make_state(&program.fake, 40);
	program.stack[20] = address(program.fake.block + STATE);
	program.stack[30] = address(program.real.block + STATE);
}

/* What the innermost state lacks. */
static void break_list(void)
{
	program.fake.block[STATE + STATE_CALL] = 0x10000;
}

static void lead_to_others(void)
{
	program.fake.block[STATE + STATE_CALL] = address(program.real.call);
}

static void take_function(void)
{
	program.fake.closure[LUA_CLOSURE_PROTO / 8] = 0x10000;
}

struct found {
	struct lua lua;
	struct interpreter lua_interpreter;
	struct interpreter_thread thread;
	struct virtual_frame frame[8];
	ssize_t frames;
};

static struct found begin(void)
{
	struct found f = {.lua = {.version_text = address(program.version)}};

	f.thread.sp = address(program.stack);
	f.thread.thread_pointer = address(program.stack + STACK_WORDS);
	f.lua.runner[f.lua.runners++] = (struct addr_range){0x400000, 0x400100};
	return f;
}

static void look(struct found *f)
{
	f->lua_interpreter = (struct interpreter){&language_lua, &f->lua, &f->lua.frames, NULL, {0}};
	assert_true(lua_layout_use(&f->lua, LUA_RELEASE(5, 4, 4)));
	f->frames = language_lua.stack(&f->lua_interpreter, &memory, &f->thread, f->frame,
				       ARRAY_SIZE(f->frame));
}

static void check_real(const struct found *f)
{
	assert_int_equal(f->frames, 2);
	assert_int_equal(f->frame[0].identity, address(program.proto));
	assert_int_equal(f->frame[0].at, address(program.real.call));
	assert_int_equal(f->thread.count, 1);
	assert_int_equal(f->thread.state[0], address(program.real.block));
}

static void test_both(void **state)
{
	struct found f = begin();

	make_program();
	look(&f);
	assert_int_equal(f.frames, 4);
	assert_int_equal(f.frame[0].at, address(program.fake.call));
	assert_int_equal(f.frame[2].at, address(program.real.call));
	assert_int_equal(f.thread.count, 2);
}

static void test_stack(void **state)
{
	static void (*const broken[])(void) = {break_list, lead_to_others};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct found f = begin();

		make_program();
		broken[i]();
		look(&f);
		check_real(&f);
		/* without protection there is nothing but the list that tells them apart */
		program.fake.block[STATE + STATE_JUMP] = program.real.block[STATE + STATE_JUMP] = 0;
		look(&f);
		check_real(&f);
		program.stack[30] = 0;
		look(&f);
		assert_int_equal(f.frames, -EFAULT);
		assert_int_equal(f.thread.count, 0);
	}
}

/* Two that are not protected: which one is this thread's is not known. */
static void test_loose(void **state)
{
	struct found f = begin();

	make_program();
	program.fake.block[STATE + STATE_JUMP] = program.real.block[STATE + STATE_JUMP] = 0;
	look(&f);
	assert_int_equal(f.frames, 0);
	program.real.block[STATE + STATE_JUMP] = address(&program.stack[60]);
	look(&f);
	assert_int_equal(f.frames, 4);
	assert_int_equal(f.frame[0].at, address(program.real.call));
}

static void test_find(void **state)
{
	static void (*const broken[])(void) = {break_list, lead_to_others, take_function};

	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct found f = begin();
		struct interpreter_process in = {.memory = memory, .path = "/usr/bin/lua5.4",
						 .thread = &f.thread};
		char *problem = NULL;

		make_program();
		broken[i]();
		f.lua_interpreter = (struct interpreter){&language_lua, &f.lua, &f.lua.frames, NULL,
							 {0}};
		assert_true(language_lua.find(&f.lua_interpreter, &in, &problem));
		assert_null(problem);
		assert_int_equal(f.lua.frames.thread.kind, VIRTUAL_STATE_STACK);
	}
}

/* The functions that may be luaD_rawrunprotected: it is in the frame of the real state's jump. */
static void test_find_place(void **state)
{
	struct found f = begin();

	make_program();
	break_list();
	program.stack[35] = 0x400020; /* below the other's jump */
	program.stack[55] = 0x500020;
	look(&f);
	f.lua.runner[f.lua.runners++] = (struct addr_range){0x500000, 0x500100};
	assert_true(language_lua.find_place(&f.lua_interpreter, &memory, &f.thread));
	assert_int_equal(f.lua.frames.values.runner_start, 0x500000);
	assert_int_equal(f.lua.frames.thread.kind, VIRTUAL_STATE_STACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_both),
		cmocka_unit_test(test_stack),
		cmocka_unit_test(test_loose),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_find_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
