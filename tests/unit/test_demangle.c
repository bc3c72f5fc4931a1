/*
 * Names of each language; the C++ ones as Valgrind 3.19 prints them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/types.h"
#include "symbols/demangle.h"

struct name_case {
	const char *mangled;
	const char *plain; /* NULL: not a mangled name */
};

static const struct name_case cases[] = {
	{"main", NULL},
	{"", NULL},
	{"_", NULL},
	{"_Z", NULL},
	{"_D", NULL},
	{"_start", NULL},
	{"_Debug", NULL},
	{"_Rb_tree", NULL},
	{"i", NULL}, /* a naive demangler would find a type */
	{"_Znwm", "operator new(unsigned long)"},
	{"_ZnamRKSt9nothrow_t", "operator new[](unsigned long, std::nothrow_t const&)"},
	{"_ZnwmSt11align_val_tRKSt9nothrow_t",
	 "operator new(unsigned long, std::align_val_t, std::nothrow_t const&)"},
	{"_Z1fv", "f()"},
	{"_Z1fv.part.0", "f() [clone .part.0]"},
	{"_Z1fv.constprop.0.isra.0", "f() [clone .constprop.0] [clone .isra.0]"},
	{"_Z1fv.cold", "f() [clone .cold]"},
	{"_ZNSt6vectorIiSaIiEE9push_backEOi", "std::vector<int, std::allocator<int> >::push_back(int&&)"},
	{"_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const"},
	{"_ZNK1AcvbEv", "A::operator bool() const"},
	{"_ZN1AC2Ev", "A::A()"},
	{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"},
	{"_Z1fv@@VERS_2", "f()@@VERS_2"},
	{"_Zbroken!", NULL},
	{"_ZN5alloc5alloc15exchange_malloc17h0123456789abcdefE", "alloc::alloc::exchange_malloc"},
	{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
	{"_RNvNtCs1234_7mycrate5inner3bar", "mycrate::inner::bar"},
	{"_D3std5stdio7writelnFZv", "std.stdio.writeln()"},
	{"_Dmain", "D main"},
};

static void test_names(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct name_case *c = &cases[i];
		char *plain = demangle(c->mangled);
		if (!plain != !c->plain || (plain && strcmp(plain, c->plain) != 0))
			fail_msg("%s -> %s, not %s", c->mangled, plain ? plain : "-", c->plain ? c->plain : "-");
		free(plain);
	}
}

/* A scope of @count names of ten characters. */
static char *nested_name(size_t count)
{
	char *s = malloc(count * 12 + 16), *p = s;
	p += sprintf(p, "_ZN");
	for (size_t i = 0; i < count; i++)
		p += sprintf(p, "10n%09zu", i);
	strcpy(p, "1fEv");
	return s;
}

static void test_long_name(void **state)
{
	char *mangled = nested_name(84); /* 1,015 characters */
	char *plain = demangle(mangled);
	assert_non_null(plain);
	assert_int_equal(strlen(plain), 84 * 12 + 3);
	assert_string_equal(plain + 83 * 12, "n000000083::f()");
	free(plain);
	free(mangled);
	mangled = nested_name(86); /* 1,039 */
	assert_null(demangle(mangled));
	free(mangled);
}

/* Too long, too deep, nonsense: no result is fine, a crash is not. */
static void test_nasty_names(void **state)
{
	static const size_t lengths[] = {8000, 8190, 20000, 1000000};
	static const char *const fillers[] = {"P", "S_", "N1a", "I", "K", "X", "1a", "J", "F"};
	for (size_t i = 0; i < ARRAY_SIZE(lengths) * ARRAY_SIZE(fillers); i++) {
		const char *filler = fillers[i % ARRAY_SIZE(fillers)];
		size_t length = lengths[i / ARRAY_SIZE(fillers)], step = strlen(filler);
		char *name = malloc(length + 16), *p = name + sprintf(name, "_Z1f");
		for (; p + step < name + length; p += step)
			memcpy(p, filler, step);
		strcpy(p, "i");
		free(demangle(name));
		free(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_long_name),
		cmocka_unit_test(test_nasty_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
