/* Conditions of --when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/types.h"
#include "session/condition.h"

#define MINUTE UINT64_C(60000000000)

static const struct {
	const char *text;
	struct condition c;
} good[] = {
	{"heap>2G", {CONDITION_HEAP, ACTION_RECORD, 2147483648.0, false, 0, 7}},
	{"heap>1.5k:record", {CONDITION_HEAP, ACTION_RECORD, 1536, false, 0, 9}},
	{"heap>0:end", {CONDITION_HEAP, ACTION_END, 0, false, 0, 6}},
	{"heap>1T", {CONDITION_HEAP, ACTION_RECORD, 1099511627776.0, false, 0, 7}},
	{"rss>80%", {CONDITION_RSS, ACTION_RECORD, 80, true, 0, 7}},
	{"rss>100M:detach", {CONDITION_RSS, ACTION_DETACH, 104857600, false, 0, 8}},
	{"growth>100M/min", {CONDITION_GROWTH, ACTION_RECORD, 104857600, false, MINUTE, 15}},
	{"growth>5/s:end", {CONDITION_GROWTH, ACTION_END, 5, false, MINUTE / 60, 10}},
	{"pressure>10%", {CONDITION_PRESSURE, ACTION_RECORD, 10, true, 0, 12}},
	{"pressure>.25%:end", {CONDITION_PRESSURE, ACTION_END, 0.25, true, 0, 13}},
	{"limit>0/min", {CONDITION_LIMIT, ACTION_RECORD, 0, false, MINUTE, 11}},
	{"limit>3/h:detach", {CONDITION_LIMIT, ACTION_DETACH, 3, false, 60 * MINUTE, 9}},
};

static void test_good(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		const struct condition *want = &good[i].c;
		struct condition c;

		assert_null(condition_parse(good[i].text, &c));
		assert_int_equal(c.kind, want->kind);
		assert_int_equal(c.action, want->action);
		assert_true(c.threshold == want->threshold);
		assert_int_equal(c.is_percent, want->is_percent);
		assert_int_equal(c.period_ns, want->period_ns);
		assert_int_equal(c.text_size, want->text_size);
	}
}

static const struct {
	const char *text, *why;
} bad[] = {
	{"", "a condition is heap>SIZE"},
	{"heap", "a condition is heap>SIZE"},
	{"heap<2G", "a condition is heap>SIZE"},
	{"Heap>2G", "a condition is heap>SIZE"},
	{">2G", "a condition is heap>SIZE"},
	{"heap>", "after > comes a number"},
	{"heap>G", "after > comes a number"},
	{"heap>.", "after > comes a number"},
	{"heap>-1", "after > comes a number"},
	{"heap>2X", "only K, M, G, T"},
	{"heap>2GB", "only K, M, G, T"},
	{"heap>80%", "only K, M, G, T"},
	{"heap>2G/min", "only K, M, G, T"},
	{"heap>2G ", "only K, M, G, T"},
	{"heap>2 ", "only K, M, G, T"},
	{"rss>101%", "there are no more than 100%"},
	{"rss>80%%", "only K, M, G, T"},
	{"growth>100M", "growth and limit are per time"},
	{"growth>100M/m", "growth and limit are per time"},
	{"growth>100M/minute", "growth and limit are per time"},
	{"growth>10%/min", "growth and limit are per time"},
	{"limit>2", "growth and limit are per time"},
	{"limit>2K/min", "growth and limit are per time"},
	{"pressure>10", "pressure is in percent"},
	{"pressure>1K", "pressure is in percent"},
	{"heap>2G:", "the action is"},
	{"heap>2G:stop", "the action is"},
	{"heap>2G:record:end", "the action is"},
};

static void test_bad(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct condition c = {.threshold = -7};
		const char *why = condition_parse(bad[i].text, &c);

		assert_non_null(why);
		if (strncmp(why, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("%s: %s", bad[i].text, why);
		assert_true(c.threshold == -7);
	}
}

/* A value that is above the threshold every other second, for a day. */
static void test_rests(void **state)
{
	struct condition_state s = {0};
	uint64_t begun[64] = {0};
	size_t count = 0;

	for (uint64_t now = MINUTE; now <= 24 * 61 * MINUTE; now += MINUTE / 240) {
		bool is_above = now / (MINUTE / 60) % 2 == 0;

		if (condition_note(&s, is_above, now) && s.holds) {
			assert_true(count < ARRAY_SIZE(begun));
			begun[count++] = now;
		}
		assert_true(is_above || !s.holds);
	}
	assert_true(begun[0] == MINUTE);
	for (size_t i = 1; i < count; i++) {
		uint64_t rest = MIN(MINUTE / 60 << (i - 1), 60 * MINUTE);

		assert_true(begun[i] - begun[i - 1] >= rest);
		assert_true(begun[i] - begun[i - 1] <= rest + 2 * MINUTE / 60);
	}
	assert_true(count > 24 && count < 40);
}

/* It goes on to hold, and begins late if it still is above the threshold then. */
static void test_holds(void **state)
{
	struct condition_state s = {0};

	assert_true(condition_note(&s, true, 1) && s.holds);
	assert_false(condition_note(&s, true, 60 * MINUTE));
	assert_true(condition_note(&s, false, 60 * MINUTE + 1) && !s.holds);
	assert_true(condition_note(&s, true, 60 * MINUTE + 2) && s.holds);
	assert_true(condition_note(&s, false, 60 * MINUTE + 3) && !s.holds);
	assert_false(condition_note(&s, true, 60 * MINUTE + 4));
	assert_false(s.holds);
	assert_true(condition_note(&s, true, 60 * MINUTE + MINUTE / 30 + 2) && s.holds);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_rests),
		cmocka_unit_test(test_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
