/*
 * Memory of a virtual machine of Java, whatever it holds: a code cache, compiled methods, scopes, and
 * names. The input is the memory from an address on; it repeats, so that most pointers lead somewhere.
 * Its first bytes are offsets of fields.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "languages/java.h"


#define P "\0\0\1\0\0\0\0\0" /* leads to the start */

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT(P P P P P P P P),
	FUZZ_TEXT("\x08\x10\x18\0\x08\x10\x20\x04\x08\x10\1\2\3\4\5\6\7\x08" P "nmethod\0" P P P P),
	FUZZ_TEXT("\0\0\1\0\0\0\0\0\1\0\0\0\0\0\0\0" P "Interpreter\0\0\0\0\0" P "\xff\xc8\1\2\3\4"),
	{0},
};

/* Each field at an offset that a byte of the input says; some are absent. */
static void take_layout(struct java_layout *l, const struct fuzz_memory *m)
{
	uint32_t *field = (uint32_t *)l;
	size_t count = offsetof(struct java_layout, frame_sender) / sizeof(*field);

	for (size_t i = 0; i < count; i++) {
		uint8_t byte = m->data[i % m->size];

		field[i] = byte > 250 ? JAVA_ABSENT : byte;
	}
	l->frame_sender = -1;
	l->frame_last = -2;
	l->heaps = l->entry_return = START;
}

static void look_at(const struct java *j, const struct language_memory *m, taddr_t pc)
{
	static struct java_frame frame[JAVA_FRAMES_MAX];
	struct java_place place = {.pc = pc, .sp = START + 64, .fp = START + 128};
	struct java_blob b;
	struct java_method x;
	struct java_step step;

	for (int i = 0; i < 2; i++, place.is_return = true) {
		if (java_blob_find(j, m, pc, &b) != 0)
			continue;
		java_step(j, m, &b, &place, &step);
		uint32_t n = java_frames(j, m, &b, &place, frame);

		CHECK(n <= JAVA_FRAMES_MAX);
	}
	if (java_method_read(j, m, pc, &x) != 0)
		return;
	CHECK(x.stamp == java_method_stamp(j, m, pc));
	for (int bci = -1; bci < 16; bci++)
		java_method_line(&x, bci);
	java_method_deinit(&x);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	struct fuzz_memory memory = {data, size};
	struct language_memory m = {fuzz_memory_read, &memory};
	struct java j = {.version = size % 2 ? 17 : 21};

	if (!size)
		return;
	take_layout(&j.layout, &memory);
	java_read_heaps(&j, &m);
	for (taddr_t pc = START; pc < START + MIN(size, 256u); pc += 8)
		look_at(&j, &m, pc);
	/* whatever heaps there are, one where the memory is */
	j.heap[0] = (struct java_heap){START, START + 0x1000, START, 0x1000 >> 3, 3};
	j.heaps = 1;
	for (taddr_t pc = START; pc < START + MIN(size, 256u); pc += 8)
		look_at(&j, &m, pc);
}
