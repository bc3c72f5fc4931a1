/* Texts of --limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/types.h"
#include "output/limit.h"

static const struct {
	const char *text, *function;
	enum limit_metric metric;
	double amount;
	bool may_equal;
} good[] = {
	{"peak<100M", "", LIMIT_PEAK, 104857600, false},
	{"peak<=1.5k", "", LIMIT_PEAK, 1536, true},
	{"live-at-end<1T", "", LIMIT_LIVE, 1099511627776.0, false},
	{"allocated<0", "", LIMIT_ALLOCATED, 0, false},
	{"allocations<10K", "", LIMIT_ALLOCATIONS, 10000, false},
	{"temporary<50%", "", LIMIT_TEMPORARY, 50, false},
	{"leaked<1", "", LIMIT_LEAKED, 1, false},
	{"rss<=200M", "", LIMIT_RSS, 209715200, true},
	{"peak@parse<10M", "parse", LIMIT_PEAK, 10485760, false},
	{"allocations@v<int>::push(int)<=7", "v<int>::push(int)", LIMIT_ALLOCATIONS, 7, true},
	{"allocated@operator<<<2M", "operator<<", LIMIT_ALLOCATED, 2097152, false},
	{"live-at-end@a@b<3", "a@b", LIMIT_LIVE, 3, false},
	{"peak<=3K within f<int>::g(char) const", "", LIMIT_PEAK, 3072, true},
	{"temporary<5% within a", "", LIMIT_TEMPORARY, 5, false},
	{"peak<3K between a::f(int) and g", "", LIMIT_PEAK, 3072, false},
};

static void test_good(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct limit l;

		assert_null(limit_parse(good[i].text, &l));
		assert_int_equal(l.metric, good[i].metric);
		assert_true(l.amount == good[i].amount);
		assert_int_equal(l.may_equal, good[i].may_equal);
		assert_int_equal(l.function_size, strlen(good[i].function));
		assert_memory_equal(l.function ? l.function : "", good[i].function,
				    l.function_size);
	}
}

static const struct {
	const char *text, *why;
} bad[] = {
	{"", "a limit is peak<SIZE"},
	{"peak", "a limit is peak<SIZE"},
	{"peak>1M", "a limit is peak<SIZE"},
	{"Peak<1M", "a limit is peak<SIZE"},
	{"rs<1M", "a limit is peak<SIZE"},
	{"rss@f<1M", "temporary, leaked and rss are of the whole program"},
	{"peak@f", "a limit is peak<SIZE"},
	{"peak@<1M", "after @ comes"},
	{"peak<1M within ", "after within comes"},
	{"peak within f<1M", "a limit is peak<SIZE"},
	{"peak<1M between f", "after between come two"},
	{"peak<1M between  and g", "after between come two"},
	{"peak<1M between f and ", "after between come two"},
	{"peak<1Mbetween f and g", "only K, M, G or T may follow"},
	{"temporary<1% between f and g", "temporary is of one thread"},
	{"rss<1M between f and g", "leaked, rss and limits with @FUNCTION"},
	{"peak<1Mwithin f", "only K, M, G or T may follow"},
	{"rss<1M within f", "leaked, rss and limits with @FUNCTION"},
	{"peak@g<1M within f", "leaked, rss and limits with @FUNCTION"},
	{"peak<1<2", "there is one <"},
	{"temporary@f<1%", "temporary, leaked and rss are of the whole program"},
	{"leaked@f<1", "temporary, leaked and rss are of the whole program"},
	{"peak<", "after < comes a number"},
	{"peak<=", "after < comes a number"},
	{"peak<-1", "after < comes a number"},
	{"peak< 1", "after < comes a number"},
	{"peak<.5", "after < comes a number"},
	{"peak<inf", "after < comes a number"},
	{"peak<0x10", "the number has digits"},
	{"peak<1e3", "the number has digits"},
	{"peak<1.2.3", "the number has digits"},
	{"peak<1MB", "only K, M, G or T"},
	{"peak<1X", "only K, M, G or T"},
	{"peak<5%", "only K, M, G or T"},
	{"allocations<1 ", "only K, M, G or T"},
	{"temporary<5", "temporary is in percent"},
	{"temporary<5K", "temporary is in percent"},
	{"temporary<101%", "there are no more than 100%"},
};

static void test_bad(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct limit l = {.amount = -7};
		const char *why = limit_parse(bad[i].text, &l);

		assert_non_null(why);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("%s: %s", bad[i].text, why);
		assert_true(l.amount == -7);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good), cmocka_unit_test(test_bad),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
