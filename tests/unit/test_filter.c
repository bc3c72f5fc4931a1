/*
 * doc/massif.md section 2.8 as a table: a stack in words, what is shown of it. Each
 * word is an address; "a+b+c" are the functions inlined there, innermost first, the
 * last one real; "?" has no name.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/filter.h"

#define FRAME_MAX 64
#define IGNORED SIZE_MAX

struct stack {
	struct symbol symbol[FRAME_MAX];
	struct symbol_frame frame[4 * FRAME_MAX];
	size_t count, frame_count, asked;
};

struct filter_case {
	const char *what;
	const char *stack;      /* innermost first */
	const char *alloc_fns;  /* blank-separated, added to the defaults */
	const char *ignore_fns;
	uint32_t depth;         /* 0 = 30 */
	bool show_below_main;
	size_t first, count;    /* first IGNORED: the block is ignored */
};

static const struct filter_case cases[] = {
	{"nothing to strip", "f main start", "", "", 0, false, 0, 2},
	{"cut after main", "f g main start _start", "", "", 0, false, 0, 3},
	{"below main shown", "f main start _start", "", "", 0, true, 0, 4},
	{"default alloc-fn", "malloc f main start", "", "", 0, false, 1, 2},
	{"several alloc-fns", "xalloc wrap f main", "xalloc wrap", "", 0, false, 2, 2},
	{"an outer alloc-fn alone", "inner outer f main", "outer", "", 0, false, 0, 4},
	{"not a prefix", "mallocx f main", "", "", 0, false, 0, 3},
	{"no wildcards", "xalloc f main", "xallo* *", "", 0, false, 0, 3},
	{"a nameless frame stops", "? malloc f main", "", "", 0, false, 0, 4},
	{"all stripped", "xalloc", "xalloc", "", 0, false, IGNORED, 0},
	{"all stripped with main", "malloc main", "main", "", 0, false, IGNORED, 0},
	{"main stripped", "malloc main start _start", "main", "", 0, false, 2, 1},
	{"main stripped, shown below", "malloc main start _start", "main", "", 0, true, 2, 2},
	{"the outermost main counts", "f main g main start", "", "", 0, false, 0, 4},
	{"no main: first start-up function", "f start _start", "", "", 0, false, 0, 2},
	{"main before a start-up function", "f start main _start", "", "", 0, false, 0, 3},
	{"a thread", "w start_thread clone", "", "", 0, false, 0, 3},
	{"depth", "f g h main", "", "", 2, false, 0, 2},
	{"depth after stripping", "malloc xalloc f g h main", "xalloc", "", 2, false, 2, 2},
	{"depth larger than the stack", "f main", "", "", 200, false, 0, 2},
	{"ignored", "bad f main", "", "bad", 0, false, IGNORED, 0},
	{"ignored below an alloc-fn", "malloc bad f main", "", "bad", 0, false, IGNORED, 0},
	{"only the first frame is ignored", "f bad main", "", "bad", 0, false, 0, 3},
	{"nameless: the next name", "? ? bad main", "", "bad", 0, false, IGNORED, 0},
	{"nameless: not the one after", "? f bad main", "", "bad", 0, false, 0, 4},
	{"nothing has a name", "? ? ?", "", "bad", 0, false, 0, 3},
	{"the empty name is no name", "? f main", "", "", 0, false, 0, 3},
	{"all inlined are alloc-fns", "a+b+c f main", "a b c", "", 0, false, 1, 2},
	{"the real one is not", "a+b+c f main", "a b", "", 0, false, 0, 3},
	{"an inner one is not", "a+b+c f main", "b c", "", 0, false, 0, 3},
	{"ignore: first that is no alloc-fn", "a+b+c f main", "a", "b", 0, false, IGNORED, 0},
	{"ignore: not the second", "a+b+c f main", "a", "c", 0, false, 0, 3},
	{"ignore: not an alloc-fn's name", "a+b+c f main", "a", "a", 0, false, 0, 3},
	{"inlined frames do not use depth", "a+b+c f main", "", "", 2, false, 0, 2},
	{"inlined main is no main", "f main+g h start", "", "", 0, false, 0, 4},
};

/* Fills @s from words; the caller frees @copy, which the names point into. */
static void parse_stack(struct stack *s, char *copy)
{
	char *words, *parts;
	memset(s, 0, sizeof(*s));
	for (char *word = strtok_r(copy, " ", &words); word; word = strtok_r(NULL, " ", &words)) {
		struct symbol *sym = &s->symbol[s->count++];
		sym->frame = &s->frame[s->frame_count];
		for (char *p = strtok_r(word, "+", &parts); p; p = strtok_r(NULL, "+", &parts)) {
			s->frame[s->frame_count++].name = strcmp(p, "?") == 0 ? NULL : p;
			sym->count++;
		}
		const char *real = sym->frame[sym->count - 1].name;
		sym->is_main = real && strcmp(real, "main") == 0;
		sym->is_below_main = real && (strcmp(real, "start") == 0 || strcmp(real, "_start") == 0);
	}
}

/* The real function's name is not shown in more detail than necessary. */
static const struct symbol *get_symbol(void *ctx, size_t i, enum symbol_part part)
{
	static struct symbol_frame real_frame;
	static struct symbol real;
	struct stack *s = ctx;
	assert_true(i < s->count);
	if (part == SYMBOL_REAL) {
		real = s->symbol[i];
		real_frame.name = real.frame[real.count - 1].name;
		real.frame = &real_frame;
		real.count = 1;
		return &real;
	}
	s->asked++;
	return &s->symbol[i];
}

static void add_names(struct filter *f, const char *names, void (*add)(struct filter *f, const char *name))
{
	char *rest, *copy = strdup(names);
	for (char *name = strtok_r(copy, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
		add(f, name);
	free(copy);
}

static void check_case(const struct filter_case *c)
{
	struct stack s;
	char *copy = strdup(c->stack);
	parse_stack(&s, copy);
	struct filter *f = filter_new(c->depth ? c->depth : 30, c->show_below_main);
	add_names(f, c->alloc_fns, filter_add_alloc_fn);
	add_names(f, c->ignore_fns, filter_add_ignore_fn);
	struct filter_range r = {77, 77};
	bool shown = filter_stack(f, get_symbol, &s, s.count, &r);
	if (shown != (c->first != IGNORED) || (shown && (r.first != c->first || r.count != c->count)))
		fail_msg("%s: %s -> shown %d, first %zu, count %zu", c->what, c->stack, shown, r.first, r.count);
	if (!shown)
		assert_true(r.first == 77 && r.count == 77);
	filter_free(f);
	free(copy);
}

static void test_table(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_case(&cases[i]);
}

/* Names with blanks, and the whole list of defaults. */
static void test_defaults(void **state)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc", "valloc",
		"__builtin_new", "__builtin_vec_new", "operator new(unsigned)", "operator new[](unsigned)",
		"operator new(unsigned long)", "operator new[](unsigned long)",
		"operator new(unsigned, std::nothrow_t const&)",
		"operator new[](unsigned, std::nothrow_t const&)",
		"operator new(unsigned long, std::nothrow_t const&)",
		"operator new[](unsigned long, std::nothrow_t const&)",
		"operator new(unsigned long, std::align_val_t)",
		"operator new[](unsigned long, std::align_val_t)",
		"operator new(unsigned long, std::align_val_t, std::nothrow_t const&)",
		"operator new[](unsigned long, std::align_val_t, std::nothrow_t const&)",
	};
	struct filter *f = filter_new(30, true);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct symbol_frame frames[2] = {{.name = names[i]}, {.name = "f"}};
		struct stack s = {.count = 2};
		s.symbol[0] = (struct symbol){.frame = &frames[0], .count = 1};
		s.symbol[1] = (struct symbol){.frame = &frames[1], .count = 1};
		struct filter_range shown;
		assert_true(filter_stack(f, get_symbol, &s, 2, &shown));
		if (shown.first != 1 || shown.count != 1)
			fail_msg("%s is not stripped", names[i]);
	}
	filter_free(f);
}

/* Names of inlined functions are looked up only where the real one is an alloc-fn. */
static void test_asks_little(void **state)
{
	for (int shows_all = 0; shows_all < 2; shows_all++) {
		struct stack s;
		char words[] = "malloc f g h i j main start";
		parse_stack(&s, words);
		struct filter *f = filter_new(30, shows_all);
		struct filter_range shown;
		assert_true(filter_stack(f, get_symbol, &s, s.count, &shown));
		assert_int_equal(s.asked, 1);
		filter_free(f);
	}
}

static const struct symbol *alloc_fn(void *ctx, size_t i, enum symbol_part part)
{
	static struct symbol_frame frames[] = {{.name = "malloc"}, {.name = "f"}};
	static const struct symbol symbols[] = {{.frame = &frames[0], .count = 1}, {.frame = &frames[1], .count = 1}};
	return &symbols[i == *(size_t *)ctx];
}

/* Massif records depth + 50 frames. The innermost is the allocation function, except for pages. */
static void test_reach(void **state)
{
	struct filter_range shown;
	size_t f_at;
	(void)state;
	for (int keeps_first = 0; keeps_first < 2; keeps_first++) {
		struct filter *f = filter_new(3, true);
		if (keeps_first)
			filter_keep_first(f);
		assert_int_equal(filter_reach(f), 52 + keeps_first);
		f_at = (size_t)(51 + keeps_first);
		assert_true(filter_stack(f, alloc_fn, &f_at, 100, &shown));
		assert_int_equal(shown.first, f_at);
		assert_int_equal(shown.count, 1);
		f_at++;
		assert_false(filter_stack(f, alloc_fn, &f_at, 100, &shown));
		filter_free(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_asks_little),
		cmocka_unit_test(test_reach),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
