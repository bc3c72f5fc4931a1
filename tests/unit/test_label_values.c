/*
 * What is read for --label of variables, from memory that may end anywhere or be anything: texts,
 * OpenTelemetry's thread contexts and the keys of their attributes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "arch/pad_label.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/types.h"
#include "session/otel_keys.h"

#define START 0x10000u
#define SIZE 1024u

static uint8_t memory[SIZE] __attribute__((aligned(8)));
static uint64_t seed;

/* Words of memory[], which is at START; nothing else is there. */
static int load(void *ctx, uint64_t at, int is_fixed, uint64_t *out)
{
	(void)ctx;
	(void)is_fixed;
	assert_int_equal(at % 8, 0);
	if (at < START || at - START > SIZE - 8)
		return 0;
	memcpy(out, memory + (at - START), sizeof(*out));
	return 1;
}

static struct pad_label_value value(const struct pad_label *l)
{
	const struct pad_label_reader reader = {load, NULL};
	struct pad_label_value v = {0};

	pad_label_read(l, &reader, 0, &v);
	assert_in_range(v.size, 0, PAD_LABEL_BYTES);
	return v;
}

static void put_word(uint32_t offset, uint64_t word)
{
	memcpy(memory + offset, &word, sizeof(word));
}

static void check_text(const struct pad_label *l, const char *text)
{
	struct pad_label_value v = value(l);

	assert_int_equal(v.state, text ? PAD_LABEL_PRESENT : PAD_LABEL_GONE);
	if (!text)
		return;
	assert_int_equal(v.size, strlen(text));
	assert_memory_equal(v.word, text, v.size);
}

/* At every place of a word, and before the end of memory. */
static void test_texts(void **state)
{
	static const char text[] = "seventeen letters";
	struct pad_label l = {.kind = PAD_LABEL_TEXT, .size = PAD_LABEL_BYTES};

	(void)state;
	for (uint32_t at = 0; at < 16; at++) {
		memset(memory, 'x', SIZE);
		memcpy(memory + at, text, sizeof(text));
		l.place = START + at;
		check_text(&l, text);
		memcpy(memory + SIZE - sizeof(text) + at, text, sizeof(text) - at);
		l.place = (int64_t)(START + SIZE - sizeof(text) + at);
		check_text(&l, at ? NULL : text);
	}
	memset(memory, 'x', SIZE);
	for (uint32_t left = 1; left < 20; left++) {
		l.place = START + SIZE - left;
		l.size = left;
		check_text(&l, &"xxxxxxxxxxxxxxxxxxxx"[20 - left]);
		l.size = left + 1;
		check_text(&l, NULL);
	}
}

static void test_ways(void **state)
{
	struct pad_label l = {.kind = PAD_LABEL_COUNTED, .place = START, .steps = 1,
			      .offset = {32}, .data = 0, .length = 8};

	(void)state;
	memset(memory, 0, SIZE);
	assert_int_equal(value(&l).state, PAD_LABEL_ABSENT);
	put_word(0, START + 64 - 32);
	put_word(64, START + 101);
	put_word(72, 5);
	memcpy(memory + 101, "abcdefgh", 8);
	check_text(&l, "abcde");
	put_word(72, UINT64_MAX); /* as much as is kept, whether it ends or not */
	assert_int_equal(value(&l).size, PAD_LABEL_BYTES);
	put_word(64, UINT64_MAX - 3);
	assert_int_equal(value(&l).state, PAD_LABEL_GONE);
	put_word(0, UINT64_MAX - 31); /* at 0 */
	assert_int_equal(value(&l).state, PAD_LABEL_GONE);
	l.kind = PAD_LABEL_NONE;
	assert_int_equal(value(&l).state, PAD_LABEL_ABSENT);
}

/* Numbers of any size at any place, also at the end. */
static void test_numbers(void **state)
{
	struct pad_label l = {.kind = PAD_LABEL_NUMBER};

	(void)state;
	for (uint32_t i = 0; i < SIZE; i++)
		memory[i] = (uint8_t)(i + 1);
	for (l.size = 1; l.size <= 8; l.size++) {
		for (uint32_t at = SIZE - 24; at < SIZE; at++) {
			uint64_t expected = 0;

			l.place = START + at;
			memcpy(&expected, memory + at, MIN(l.size, SIZE - at));
			struct pad_label_value v = value(&l);

			if (at + l.size > SIZE)
				assert_int_equal(v.state, PAD_LABEL_GONE);
			else
				assert_true(v.state == PAD_LABEL_PRESENT && v.word[0] == expected);
		}
	}
}

/* Attributes with any sizes; each read ends, within the memory that is there. */
static void test_contexts(void **state)
{
	struct pad_label l = {.kind = PAD_LABEL_ATTRIBUTE, .place = START, .key = 3};

	(void)state;
	memset(memory, 0, SIZE);
	memory[PAD_CONTEXT_VALID] = 1;
	memory[PAD_CONTEXT_SIZE] = 10;
	memcpy(memory + PAD_CONTEXT_ATTRIBUTES, "\1\2xy\3\4abcd", 10);
	check_text(&l, "abcd");
	memory[PAD_CONTEXT_SIZE] = 9; /* it is cut off */
	assert_int_equal(value(&l).state, PAD_LABEL_ABSENT);
	memory[PAD_CONTEXT_VALID] = 0;
	memory[PAD_CONTEXT_SIZE] = 10;
	assert_int_equal(value(&l).state, PAD_LABEL_ABSENT);
	for (uint32_t run = 0; run < 20000; run++) {
		l.place = START + (int64_t)(hash_u64(++seed) % SIZE);
		for (uint32_t i = 0; i < SIZE; i += 8)
			put_word(i, hash_u64(++seed) & (run % 2 ? 0x0303030303030303u : UINT64_MAX));
		value(&l);
	}
}

static const uint8_t keys[] =
	"\x12\x33\x0a\x1dthreadlocal.attribute_key_map\x12\x12\x2a\x10"
	"\x0a\x06\x0a\x04path\x0a\x06\x0a\x04user";

/* Of 64, 32 and 7 bits, which are passed. */
static const uint8_t other_fields[] = "\x09\x12\x33\x0a\x1dtext\x15\x12\x33\x0a\x1d\x18\x12";

static int find_key(const uint8_t *payload, size_t size, const char *key)
{
	return otel_keys_find_in(payload, size, key);
}

/* A message that is whole; every part of it; and with bytes that are others. */
static void test_keys(void **state)
{
	size_t size = sizeof(keys) - 1;
	uint8_t copy[sizeof(keys)];

	(void)state;
	assert_int_equal(find_key(keys, size, "path"), 0);
	assert_int_equal(find_key(keys, size, "user"), 1);
	assert_int_equal(find_key(keys, size, "use"), -1);
	uint8_t after[sizeof(other_fields) - 1 + sizeof(keys)];

	memcpy(after, other_fields, sizeof(other_fields) - 1);
	memcpy(after + sizeof(other_fields) - 1, keys, sizeof(keys));
	assert_int_equal(find_key(after, sizeof(after) - 1, "user"), 1);
	for (size_t part = 1; part < size; part++) {
		uint8_t *whole = xmemdup(keys, part); /* for ASan: nothing behind it */

		assert_int_equal(find_key(whole, part, "user"), -1);
		free(whole);
	}
	for (uint32_t run = 0; run < 20000; run++) {
		memcpy(copy, keys, sizeof(keys));
		for (uint32_t i = 0; i < 1 + run % 3; i++) {
			uint64_t any = hash_u64(++seed);

			copy[any % size] = (uint8_t)(any >> 32);
		}
		assert_in_range(find_key(copy, size, "user") + 1, 0, 256);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_ways),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_contexts),
		cmocka_unit_test(test_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
