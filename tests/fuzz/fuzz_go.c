/*
 * The table of functions of a Go program, and the list of buckets of its heap profile, in the same
 * bytes: nothing is read beyond their end.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/go_table.h"
#include "base/log.h"
#include "languages/go_heap.h"

#define BASE 0x1000u
#define Z4 "\0\0\0\0"
#define Z8 Z4 Z4
#define U64(low) low "\0\0\0\0\0\0"

/* Go 1.20: two functions; names at 72, units at 88, files at 92, values at 96, functions at 108 */
#define TABLE                                                                                \
	"\xf1\xff\xff\xff\0\0\1\10" U64("\2\0") U64("\1\0") U64("\0\20") U64("\110\0")       \
	U64("\130\0") U64("\134\0") U64("\140\0") U64("\154\0") "main.f\0main.g\0\0\0"       \
	Z4 "a.s\0" "\0\62\40\57\40\0\2\20\4\60\0\0"                                          \
	"\0\0\0\0\24\0\0\0\40\0\0\0\100\0\0\0\100\0\0\0"                                     \
	Z4 Z4 Z4 Z4 "\1\0\0\0\6\0\0\0\10\0\0\0" Z4 Z4 Z4 "\0\0\0\0"                           \
	"\40\0\0\0\7\0\0\0" Z8 "\1\0\0\0\6\0\0\0\10\0\0\0" Z8 Z4 "\0\1\0\0"

/* the first bucket, cycle, rate, lock; a bucket with two addresses, and one with none */
#define BUCKETS                                                                              \
	U64("\40\20") U64("\4\0") U64("\0\2") Z8                                             \
	Z8 U64("\340\20") U64("\1\0") Z8 U64("\60\0") U64("\2\0") U64("\0\20") U64("\10\20") \
	U64("\1\0") Z8 U64("\60\0") Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8                   \
	Z8 Z8 U64("\1\0") Z8 U64("\20\0") Z8 U64("\1\0") Z8 U64("\20\0") Z8                  \
	Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8 Z8

const struct fuzz_seed fuzz_seeds[] = {
	FUZZ_TEXT(TABLE),
	FUZZ_TEXT(BUCKETS),
	{0},
};

struct bytes {
	const uint8_t *data;
	size_t size;
};

static bool read_bytes(void *ctx, taddr_t addr, void *buf, size_t size)
{
	const struct bytes *b = ctx;

	if (addr < BASE || size > b->size || addr - BASE > b->size - size)
		return false;
	memcpy(buf, b->data + (addr - BASE), size);
	return true;
}

static void read_table(const uint8_t *data, size_t size)
{
	struct go_table *t = go_table_parse(&(struct go_bytes){data, size, 0}, BASE);
	struct go_function f;
	const char *text;
	uint32_t n;

	for (uint64_t vaddr = BASE - 1; t && vaddr < BASE + 0x60; vaddr += 3) {
		uint64_t at = vaddr;

		if (!go_table_find_caller(t, vaddr, &f))
			continue;
		CHECK(f.entry == vaddr + 1 || (vaddr >= f.entry && vaddr < f.end));
		CHECK(strlen(f.name) < size);
		if (go_table_frame(t, &f, vaddr, &n))
			CHECK(n % 8 == 0);
		if (go_table_line(t, &f, vaddr, &text, &n))
			CHECK(strlen(text) < size);
		go_table_inlined(t, &f, &at, &text);
	}
	if (t)
		go_table_find_name(t, "main.g", &f);
	free(t);
}

void fuzz_one(const uint8_t *data, size_t size)
{
	static const struct go_heap_places places = {
		.buckets = 0, .cycle = 8, .rate = 16, .lock = 24, .cycle_shift = 1};
	uint8_t *copy = malloc(size + 1); /* exactly as large: a sanitizer sees reads beyond it */
	struct bytes all = {copy, size};
	const struct language_memory memory = {.read = read_bytes, .ctx = &all};
	struct go_heap h;

	memcpy(copy, data, size);
	copy = realloc(copy, size ? size : 1);
	all.data = copy;
	read_table(copy, size);
	if (go_heap_read(&memory, &places, BASE, &h)) {
		for (size_t i = 0; i < h.buckets.count; i++) {
			const struct go_bucket *b = &h.buckets.data[i];

			CHECK(b->pc + (uint64_t)b->pcs <= h.pcs.count);
			go_heap_estimate(&b->counts, h.rate);
		}
		go_heap_deinit(&h);
	}
	free(copy);
}
