/*
 * Memory of a Ruby, PHP or Lua process, whatever it holds: functions, their texts and tables of lines,
 * classes and symbols, and lists of frames, by the offsets of each version. The input is the memory
 * from an address on; it repeats, so that most pointers lead somewhere.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "languages/lua.h"
#include "languages/php.h"
#include "languages/ruby.h"

#define FRAMES 1000

/* Words: one that leads to the start; the flags of an iseq, a method, a String, an Array. */
#define P "\0\0\1\0\0\0\0\0"
#define ISEQ "\x1a\x70\0\0\0\0\0\0"
#define METHOD "\x1a\x60\0\0\0\0\0\0"
#define STRING "\5\x20\0\0\0\0\0\0"
#define ARRAY "\7\0\0\0\0\0\0\0"
#define SIZE "\x40\0\0\0\x40\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT(ISEQ P P P P STRING P SIZE P ARRAY P P P P P P P P P SIZE P P),
	FUZZ_TEXT(METHOD P P SIZE P P P P), /* a method that is its own class */
	FUZZ_TEXT("\2\0\0\0\0\0\0\0" P P SIZE P P P P P SIZE SIZE P P P P P P P P P P P),
	FUZZ_TEXT("\1\0\0\0\0\0\0\0" P P P),
	FUZZ_TEXT(P P P P P P P P),         /* a list that leads to itself */
	/* a Proto of 5.4 whose code, lines and source are here, too; a lua_State */
	FUZZ_TEXT(P "\12\0\0\0\0\0\0\0" SIZE SIZE SIZE "\3\0\0\0\1\0\0\0" P P P P P P P P P P),
	FUZZ_TEXT(P "\10\0\0\0\0\0\0\0" P P P P P P P P P P P P P),
	{0},
};

struct reader {
	const struct language *language;
	struct virtual_layout *frames;
	void *own;
};

static void read_all(const struct reader *r, const struct language_memory *m, size_t size)
{
	static struct virtual_frame frame[FRAMES];
	struct interpreter i = {.language = r->language, .own = r->own, .frames = r->frames};
	struct interpreter_thread t = {.thread_pointer = START + 1024, .sp = START};

	for (taddr_t addr = START; addr < START + MIN(size, 256u); addr += 8) {
		const struct virtual_frame f = {.identity = addr, .at = addr};
		struct virtual_function function;

		if (r->language->read_function(&i, m, &f, &function) != 0)
			continue;
		CHECK(function.name);
		for (uint64_t position = 0; position < 64; position++)
			r->language->line(&i, m, &function, function.start + position * 4);
		r->language->line(&i, m, &function, UINT64_MAX);
		virtual_function_deinit(&function);
	}
	CHECK(virtual_frames_walk(r->frames, m, START, frame, FRAMES) <= FRAMES);
	CHECK(r->language->stack(&i, m, &t, frame, FRAMES) <= FRAMES);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct fuzz_memory memory = {data, size};
	struct language_memory m = {fuzz_memory_read, &memory};

	for (unsigned minor = 0; minor <= 4; minor++) {
		struct ruby r = {.data = {START, START + 65536}, .symbols = START};

		if (ruby_layout_use(&r, RUBY_VERSION(3, minor)))
			read_all(&(struct reader){&language_ruby, &r.frames, &r}, &m, size);
		ruby_find_symbols(&r, &m);
	}
	for (unsigned minor = 0; minor <= 5; minor++) {
		struct php p = {.globals = START};

		if (php_layout_use(&p, PHP_VERSION(8, minor)))
			read_all(&(struct reader){&language_php, &p.frames, &p}, &m, size);
	}
	for (unsigned minor = 3; minor <= 4; minor++) {
		struct lua l = {.version_text = START};

		if (lua_layout_use(&l, LUA_RELEASE(5, minor, 6)))
			read_all(&(struct reader){&language_lua, &l.frames, &l}, &m, size);
	}
}
