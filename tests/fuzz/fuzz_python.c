/*
 * Memory of a Python process, whatever it holds: code objects, their texts and tables, and lists of
 * frames, by the offsets of each version. The input is the memory from an address on; it repeats, so
 * that most pointers lead somewhere.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "languages/python.h"

#define FRAMES 1000

/* Words: one that leads to the start; a length; the state of a text of ASCII. */
#define P "\0\0\1\0\0\0\0\0"
#define LENGTH "\3\0\0\0\0\0\0\0"
#define STATE "\x64\0\0\0\0\0\0\0"

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT(P P LENGTH P STATE P P P),  /* a code object that is also its name and its table */
	FUZZ_TEXT(P P P P P P P P),           /* a list that leads to itself */
	FUZZ_TEXT(P P LENGTH "xdebugpy" STATE P P P "\2\1\2\x80\xf0\6\x80\1\xd8\2\xe9\5\xf8\7\7\7"),
	{0},
};

static void read_code(struct python *p, const struct language_memory *m, taddr_t addr)
{
	struct virtual_function c;

	/* whatever type is there is taken for that of code objects */
	if (!language_read_word(m, addr + p->layout.type, &p->code_type))
		return;
	p->frames.kind[0].type_value = p->code_type;
	p->frames.kinds = 1;
	if (python_code_read(p, m, addr, &c) != 0)
		return;
	CHECK(virtual_stamp(&p->frames, m, addr) == c.stamp);
	for (uint64_t position = 0; position < 64; position++)
		python_code_line(&p->layout, &c, python_code_offset(p, m, &c, position));
	python_code_line(&p->layout, &c, python_code_offset(p, m, &c, UINT64_MAX));
	python_code_line(&p->layout, &c, INT64_MAX);
	virtual_function_deinit(&c);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct fuzz_memory memory = {data, size};
	struct language_memory m = {fuzz_memory_read, &memory};
	static struct virtual_frame frame[FRAMES];

	for (uint32_t version = PYTHON_OLDEST; version <= PYTHON_NEWEST; version++) {
		struct python p = {.runtime = START};
		struct interpreter_thread states = {.thread_pointer = START};

		if (!python_layout_use(&p, &m, version))
			continue;
		for (taddr_t addr = START; addr < START + MIN(size, 256u); addr += 8)
			read_code(&p, &m, addr);
		ssize_t n = python_stack(&p, &m, &states, frame, FRAMES);

		CHECK(n <= FRAMES && states.count <= INTERPRETER_STATES_MAX);
	}
}
