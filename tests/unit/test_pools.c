/* Memory pools: reported blocks and releases, and their order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracee/calls/pools.h"

/* What was reported, as "+ADDR:SIZE " and "-ADDR ". */
static char reported[4096];

static void come(void *ctx, taddr_t addr, uint64_t size)
{
	char word[64];
	(void)ctx;
	snprintf(word, sizeof(word), "+%lx:%lu ", (unsigned long)addr, (unsigned long)size);
	strcat(reported, word);
}

static void gone(void *ctx, taddr_t addr)
{
	char word[64];
	(void)ctx;
	snprintf(word, sizeof(word), "-%lx ", (unsigned long)addr);
	strcat(reported, word);
}

static const struct pool_ops ops = {.come = come, .gone = gone};

#define APPLY(p, ...) apply(p, &(struct request){__VA_ARGS__})

static const char *apply(struct pools *p, const struct request *r)
{
	reported[0] = '\0';
	pools_apply(p, r, &ops);
	return reported;
}

static bool exists(struct pools *p, taddr_t name)
{
	return pools_apply(p, &(struct request){.kind = REQUEST_POOL_EXISTS, .pool = name}, &ops);
}

static void plain(void **state)
{
	struct pools p = {0};
	assert_string_equal(APPLY(&p, REQUEST_ALLOC, .addr = 0x10, .size = 5), "+10:5 ");
	assert_string_equal(APPLY(&p, REQUEST_FREE, .addr = 0x10), "-10 ");
	assert_string_equal(APPLY(&p, REQUEST_RESIZE, .addr = 0x20, .size = 7), "-20 +20:7 ");
	assert_string_equal(APPLY(&p, REQUEST_ALLOC, .addr = 0, .size = 7), "");
	assert_string_equal(APPLY(&p, REQUEST_RESIZE, .addr = 0, .size = 7), "");
	assert_int_equal(p.single.blocks.index.count, 0); /* they are not needed */
	pools_deinit(&p);
}

static void a_pool(void **state)
{
	struct pools p = {0};
	assert_false(exists(&p, 1));
	APPLY(&p, REQUEST_POOL_CREATE, .pool = 1);
	assert_true(exists(&p, 1));
	assert_string_equal(APPLY(&p, REQUEST_POOL_ALLOC, .pool = 1, .addr = 0x300, .size = 3), "+300:3 ");
	assert_string_equal(APPLY(&p, REQUEST_POOL_ALLOC, .pool = 1, .addr = 0x100, .size = 1), "+100:1 ");
	assert_string_equal(APPLY(&p, REQUEST_POOL_ALLOC, .pool = 1, .addr = 0x200, .size = 0), "+200:0 ");
	assert_string_equal(APPLY(&p, REQUEST_POOL_ALLOC, .pool = 1, .addr = 0x100, .size = 9), "-100 +100:9 ");
	assert_string_equal(APPLY(&p, REQUEST_POOL_FREE, .pool = 1, .addr = 0x400), "");
	assert_string_equal(APPLY(&p, REQUEST_POOL_FREE, .pool = 2, .addr = 0x300), "");
	assert_string_equal(APPLY(&p, REQUEST_POOL_CHANGE, .pool = 1, .old_addr = 0x200, .addr = 0x210, .size = 4),
			    "-200 +210:4 ");
	APPLY(&p, REQUEST_POOL_MOVE, .pool = 1, .addr = 7);
	assert_true(exists(&p, 7) && !exists(&p, 1));
	/* in order of creation */
	assert_string_equal(APPLY(&p, REQUEST_POOL_DESTROY, .pool = 7), "-300 -100 -210 ");
	assert_false(exists(&p, 7));
	assert_string_equal(APPLY(&p, REQUEST_POOL_DESTROY, .pool = 7), "");
	assert_string_equal(APPLY(&p, REQUEST_POOL_ALLOC, .pool = 9, .addr = 0x10, .size = 1), "+10:1 ");
	assert_true(exists(&p, 9)); /* by its first block */
	pools_deinit(&p);
}

static void trimming(void **state)
{
	struct pools p = {0};
	for (taddr_t addr = 0x100; addr <= 0x500; addr += 0x100)
		APPLY(&p, REQUEST_POOL_ALLOC, .pool = 1, .addr = addr, .size = 0x80);
	/* 1: outside; 2: cut at its beginning; 3: whole; 4: cut at its end; 5: outside */
	assert_string_equal(APPLY(&p, REQUEST_POOL_TRIM, .pool = 1, .addr = 0x240, .size = 0x200),
			    "-100 -200 +240:64 -400 +400:64 -500 ");
	assert_string_equal(APPLY(&p, REQUEST_POOL_TRIM, .pool = 1, .addr = 0, .size = UINT64_MAX), "");
	assert_string_equal(APPLY(&p, REQUEST_POOL_TRIM, .pool = 1, .addr = 0x300, .size = 0), "-300 -240 -400 ");
	pools_deinit(&p);
}

static void auto_free(void **state)
{
	struct pools p = {0};
	APPLY(&p, REQUEST_POOL_CREATE, .pool = 1, .flags = REQUEST_POOL_AUTO_FREE | 2);
	APPLY(&p, REQUEST_POOL_ALLOC, .pool = 1, .addr = 0x1000, .size = 0x1000);
	APPLY(&p, REQUEST_ALLOC, .addr = 0x1000, .size = 16);
	APPLY(&p, REQUEST_ALLOC, .addr = 0x1100, .size = 16);
	APPLY(&p, REQUEST_ALLOC, .addr = 0x1ff8, .size = 16); /* across the end: not inside */
	APPLY(&p, REQUEST_ALLOC, .addr = 0x3000, .size = 16);
	APPLY(&p, REQUEST_FREE, .addr = 0x1100);
	assert_string_equal(APPLY(&p, REQUEST_POOL_FREE, .pool = 1, .addr = 0x1000), "-1000 -1000 ");
	assert_int_equal(p.single.blocks.index.count, 2);
	pools_deinit(&p);
}

/* Compared with a plain array. */
static void many(void **state)
{
	enum { ADDRESSES = 3000 };
	static bool lives[ADDRESSES];
	struct pools p = {0}, copy = {0};
	uint32_t seed = 7;
	size_t count = 0;
	APPLY(&p, REQUEST_POOL_CREATE, .pool = 1);
	for (int i = 0; i < 50000; i++) {
		seed = seed * 1103515245 + 12345;
		size_t k = (seed >> 8) % ADDRESSES;
		bool adds = seed >> 31;
		const char *want = adds ? lives[k] ? "-+" : "+" : lives[k] ? "-" : "";
		APPLY(&p, adds ? REQUEST_POOL_ALLOC : REQUEST_POOL_FREE, .pool = 1, .addr = 16 * (k + 1), .size = 8);
		count += adds ? !lives[k] : -(size_t)lives[k];
		lives[k] = adds;
		assert_int_equal(strchr(reported, '-') != NULL, strchr(want, '-') != NULL);
		assert_int_equal(strchr(reported, '+') != NULL, strchr(want, '+') != NULL);
	}
	assert_int_equal(p.list.data[0].blocks.index.count, count);
	pools_copy(&copy, &p);
	pools_deinit(&p);
	for (size_t k = 0; k < ADDRESSES; k++) {
		APPLY(&copy, REQUEST_POOL_FREE, .pool = 1, .addr = 16 * (k + 1));
		assert_int_equal(reported[0] == '-', lives[k]);
	}
	pools_deinit(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain), cmocka_unit_test(a_pool), cmocka_unit_test(trimming),
		cmocka_unit_test(auto_free), cmocka_unit_test(many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
