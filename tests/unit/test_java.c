/*
 * HotSpot's code cache, frames and methods, in a virtual machine that is made here, word by word.
 * tests/e2e/test_java.py has real ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "languages/java.h"

#define BASE 0x100000u
#define SIZE 0x10000u

static uint8_t memory[SIZE];

static bool read_memory(void *ctx, taddr_t addr, void *buf, size_t size)
{
	(void)ctx;
	if (addr < BASE || addr - BASE > SIZE || size > SIZE - (addr - BASE))
		return false;
	memcpy(buf, memory + (addr - BASE), size);
	return true;
}

static const struct language_memory view = {read_memory, NULL};

static void put(taddr_t addr, uint64_t value, size_t size)
{
	memcpy(memory + (addr - BASE), &value, size);
}

static void put_text(taddr_t addr, const char *text)
{
	memcpy(memory + (addr - BASE), text, strlen(text) + 1);
}

/* -- numbers and lines -- */

static void number_case(const char *bytes, bool has_zero, uint32_t want)
{
	uint32_t got = 0;
	size_t at = 0, size = strlen(bytes);

	assert_true(java_read_number((const uint8_t *)bytes, size, &at, has_zero, &got));
	assert_int_equal(got, want);
	assert_int_equal(at, size);
}

static void test_numbers(void **state)
{
	uint32_t got;
	size_t at = 0;

	(void)state;
	number_case("\x05", true, 5);
	number_case("\xbf", true, 191);
	number_case("\xc0\x01", true, 192 + 64);
	number_case("\xff\xff\xff\xff\xff", true, 0xff + (0xffu << 6) + (0xffu << 12) + (0xffu << 18) +
							  (0xffu << 24));
	number_case("\x01", false, 0);
	number_case("\xbf", false, 190);
	number_case("\xc0\x01", false, 191);
	assert_false(java_read_number((const uint8_t *)"\xc0", 1, &at, true, &got));
	at = 0;
	assert_false(java_read_number((const uint8_t *)"\0", 1, &at, false, &got));
}

static void line_case(const char *table, size_t size, bool has_zero, const int *want)
{
	struct java_method x = {.lines = (uint8_t *)table, .lines_size = size, .has_zero = has_zero};

	for (int bci = 0; want[bci] >= 0; bci++)
		assert_int_equal(java_method_line(&x, bci), want[bci]);
	assert_int_equal(java_method_line(&x, -1), 0);
}

static void test_lines(void **state)
{
	(void)state;
	/* bci 0: line 7; 2: 9; then by numbers: 3: 9 - 1 */
	line_case("\x07\x12\xff\x02\x01", 6, true, (int[]){7, 7, 9, 8, 8, -1});
	line_case("\x07\x12\xff\x03\x02", 6, false, (int[]){7, 7, 9, 8, 8, -1});
	line_case("\xff\x00\xc8\x01", 4, true, (int[]){132, 132, -1}); /* a 0 in a number */
	line_case("\x0a\xff", 2, true, (int[]){0, 2, 2, -1});          /* cut off */
	line_case("", 0, true, (int[]){0, -1});
}

/* -- a virtual machine -- */

#define HEAP BASE
#define HEAP_BLOCKS 8u  /* segments of 128 bytes */
#define SEGMENTS (BASE + 0x8000)
#define BLOB (HEAP + 2 * 128 + 16)
#define CODE (BLOB + 0x80)
#define CODE_END (BLOB + 0x100)
#define NAMES (BASE + 0x9000)
#define DESCS (BASE + 0xa100)
#define SCOPES (BASE + 0xa000)
#define METADATA (BASE + 0xa200)
#define METHOD(i) (BASE + 0xb000 + (taddr_t)(i) * 0x200)
#define STACK (BASE + 0xd000)

static struct java make_java(void)
{
	struct java j = {.version = 17, .heaps = 1};
	struct java_layout *l = &j.layout;

	memset(l, 0xff, sizeof(*l));
	l->entry_return = 0;
	l->block_used = 8, l->block_size = 16;
	l->blob_name = 0, l->blob_size = 8, l->blob_frame = 12, l->blob_complete = 16;
	l->blob_code_start = 24, l->blob_code_end = 32;
	l->nmethod_method = 40, l->nmethod_scopes = 48, l->nmethod_descs_offset = 56;
	l->nmethod_descs_end = 60, l->nmethod_metadata = 64, l->nmethod_original = 68;
	l->nmethod_id = 72, l->nmethod_deopt = 80, l->nmethod_deopt_mh = 88, l->nmethod_size = 96;
	l->method_const = 8;
	l->const_pool = 0, l->const_flags = 8, l->const_code_size = 12, l->const_name = 14;
	l->const_size = 16, l->const_has_lines = 1;
	l->pool_holder = 0, l->pool_source = 8, l->pool_size = 16, l->class_name = 0;
	l->symbol_length = 0, l->symbol_text = 2;
	l->desc_pc = 0, l->desc_scope = 4, l->desc_size = 8;
	l->frame_sender = -1, l->frame_last = -2;
	j.heap[0] = (struct java_heap){HEAP, HEAP + HEAP_BLOCKS * 128, SEGMENTS, HEAP_BLOCKS, 7};
	return j;
}

/* A block of segments 2 to 5, others free, with a compiled method in it. */
static void put_blob(const char *name)
{
	static const uint8_t map[HEAP_BLOCKS] = {0xff, 0xff, 0, 1, 2, 1, 0xff, 0xff};

	memset(memory, 0, sizeof(memory));
	memcpy(memory + (SEGMENTS - BASE), map, sizeof(map));
	put(BLOB - 8, 1, 1);
	put_text(NAMES, name);
	put(BLOB, NAMES, 8);
	put(BLOB + 8, 0x180, 4);
	put(BLOB + 12, 6, 4);
	put(BLOB + 16, 12, 4);
	put(BLOB + 24, CODE, 8);
	put(BLOB + 32, CODE_END, 8);
	put(BLOB + 40, METHOD(0), 8);
	put(BLOB + 48, SCOPES, 8);
	put(BLOB + 56, DESCS - BLOB, 4);
	put(BLOB + 60, DESCS - BLOB + 3 * 8, 4);
	put(BLOB + 64, METADATA - BLOB, 4);
	put(BLOB + 68, 16, 4);
	put(BLOB + 72, 33, 4);
	put(BLOB + 80, CODE + 0x60, 8);
	put(BLOB + 88, CODE + 0x70, 8);
}

/* Method @i, a.b.Test.name, in Test.java; its only line is @line. */
static void put_method(int i, const char *name, uint32_t line)
{
	taddr_t at = METHOD(i), code = at + 0x20, pool = at + 0x80, class = at + 0xc0;

	put(at + 8, code, 8);
	put(code, pool, 8);
	put(code + 8, 1, 4);
	put(code + 12, 20, 2);
	put(code + 14, 1, 2);
	put(code + 16 + 20, 0xff, 1); /* bci 0, @line */
	put(code + 16 + 21, 0, 1);
	put(code + 16 + 22, (uint64_t)line * 2, 1);
	put(pool, class, 8);
	put(pool + 8, 2, 2);
	put(pool + 16 + 8, at + 0x100, 8);
	put(pool + 16 + 16, at + 0x140, 8);
	put(class, at + 0x180, 8);
	put(at + 0x100, strlen(name), 2);
	put_text(at + 0x102, name);
	put(at + 0x140, 9, 2);
	put_text(at + 0x142, "Test.java");
	put(at + 0x180, 25, 2);
	put_text(at + 0x182, "a/b/Test$$Lambda$1/0x0012");
}

static void test_blobs(void **state)
{
	struct java j = make_java();
	struct java_blob b;

	(void)state;
	put_blob("nmethod");
	for (taddr_t pc = HEAP - 8; pc < HEAP + HEAP_BLOCKS * 128 + 8; pc += 8)
		assert_int_equal(java_blob_find(&j, &view, pc, &b) == 0, pc >= CODE && pc <= CODE_END);
	assert_int_equal(java_blob_find(&j, &view, CODE + 8, &b), 0);
	assert_int_equal(b.kind, JAVA_COMPILED);
	assert_int_equal(b.frame_size, 48);
	assert_int_equal(b.start, CODE);
	assert_int_equal(java_blob_stamp(&j, &view, b.at), b.stamp);
	put(BLOB + 72, 34, 4);
	assert_int_not_equal(java_blob_stamp(&j, &view, b.at), b.stamp);
	put(BLOB - 8, 0, 1);
	assert_int_equal(java_blob_find(&j, &view, CODE + 8, &b), -ENOENT); /* freed */
	put(BLOB - 8, 1, 1);
	put(BLOB + 32, CODE_END + 0x1000, 8);
	assert_int_equal(java_blob_find(&j, &view, CODE + 8, &b), -ENOENT); /* larger than it is */
	put(SEGMENTS + 2, 3, 1);
	assert_int_equal(java_blob_find(&j, &view, CODE + 8, &b), -ENOENT); /* begins before all */
}

static void frame_case(const struct java *j, const struct java_place *place, const char *want)
{
	struct java_blob b;
	struct java_frame frame[JAVA_FRAMES_MAX];
	char text[256] = "";

	assert_int_equal(java_blob_find(j, &view, place->pc - place->is_return, &b), 0);
	uint32_t n = java_frames(j, &view, &b, place, frame);

	for (uint32_t i = 0; i < n; i++) {
		struct java_method x;
		size_t used = strlen(text);

		assert_int_equal(java_method_read(j, &view, frame[i].method, &x), 0);
		snprintf(text + used, sizeof(text) - used, "%s (%s:%u) ", x.name, x.file,
			 java_method_line(&x, frame[i].bci));
		java_method_deinit(&x);
	}
	assert_string_equal(text, want);
}

#define T(name, line) "a.b.Test$$Lambda$1." name " (Test.java:" line ") "

/* Scope 1: method 1 at bci 2; scope 5, called by it: method 2 at bci 0. */
static void put_scopes(void)
{
	static const uint8_t scopes[] = {0, 0, 1, 3, 0, 1, 2, 1};

	put_blob("nmethod");
	put_method(0, "outer", 10);
	put_method(1, "outer", 10);
	put_method(2, "inner", 20);
	memcpy(memory + (SCOPES - BASE), scopes, sizeof(scopes));
	put(METADATA, METHOD(1), 8);
	put(METADATA + 8, METHOD(2), 8);
	put(DESCS, 0xffffffff, 4);
	put(DESCS + 8, 0x20, 4);
	put(DESCS + 12, 5, 4);
	put(DESCS + 16, 0x30, 4);
	put(DESCS + 20, 1, 4);
}

static void test_compiled(void **state)
{
	struct java j = make_java();
	struct java_blob b;
	struct java_step step;
	struct java_place place = {.pc = CODE + 0x20, .is_return = true, .sp = STACK};

	(void)state;
	put_scopes();
	frame_case(&j, &place, T("inner", "20") T("outer", "10"));
	place.pc = CODE + 0x28; /* no call returns there */
	frame_case(&j, &place, T("outer", "0"));
	place.is_return = false; /* interrupted: the next description */
	frame_case(&j, &place, T("outer", "10"));
	place = (struct java_place){.pc = CODE + 0x60, .is_return = true, .sp = STACK};
	put(STACK + 16, CODE + 0x20, 8); /* deoptimized: where it would have returned */
	frame_case(&j, &place, T("inner", "20") T("outer", "10"));
	assert_int_equal(java_blob_find(&j, &view, CODE, &b), 0);
	java_step(&j, &view, &b, &place, &step);
	assert_int_equal(step.kind, JAVA_BY_SIZE);
	assert_int_equal(step.size, 48);
	assert_false(step.is_fixed);
	place.pc = CODE + 0x20;
	java_step(&j, &view, &b, &place, &step);
	assert_true(step.is_fixed);
	place = (struct java_place){.pc = CODE + 8, .sp = STACK}; /* it has no frame yet */
	java_step(&j, &view, &b, &place, &step);
	assert_int_equal(step.kind, JAVA_UNKNOWN);
	put(METADATA, 0x1234, 8); /* what is there is no method */
	put(METADATA + 8, 0, 8);
	place = (struct java_place){.pc = CODE + 0x20, .is_return = true};
	frame_case(&j, &place, T("outer", "0"));
}

static void test_interpreted(void **state)
{
	struct java j = make_java();
	struct java_blob b;
	struct java_step step;
	const struct java_place place = {.pc = CODE + 0x20, .is_return = true, .fp = STACK + 0x100};

	(void)state;
	put_blob("Interpreter");
	put_method(1, "slow", 7);
	put(place.fp - 8, place.fp + 16 + 24, 8); /* the caller's stack, with arguments of a copy */
	put(place.fp - 24, METHOD(1), 8);
	put(place.fp - 64, METHOD(1) + 0x20 + 16 + 3, 8);
	frame_case(&j, &place, T("slow", "7"));
	assert_int_equal(java_blob_find(&j, &view, CODE, &b), 0);
	java_step(&j, &view, &b, &place, &step);
	assert_int_equal(step.kind, JAVA_BY_FP);
	assert_int_equal(step.caller_sp, place.fp + 40);
	put(place.fp - 8, place.fp - 16, 8);
	java_step(&j, &view, &b, &place, &step);
	assert_int_equal(step.caller_sp, 0);
	put(place.fp - 64, 0, 8);
	frame_case(&j, &place, T("slow", "0"));
	put(place.fp - 24, 0x77, 8);
	frame_case(&j, &place, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),	    cmocka_unit_test(test_lines),
		cmocka_unit_test(test_blobs),	    cmocka_unit_test(test_compiled),
		cmocka_unit_test(test_interpreted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
