/*
 * Orders of members that are proposed for structs: the structs are compiled again with these, and
 * must have the sizes that were said. Many are random: of all kinds of members, in C++ with bases.
 */
#include "layout.h"

#include "graph/struct_layout.h"

#define STRUCTS 600u
#define MEMBERS_MAX 9u

static const char head[] =
	"#include <stdio.h>\n"
	"#ifdef __cplusplus\n"
	"struct with_ctor { with_ctor() {} long a; char b; };\n"
	"struct with_table { virtual ~with_table() {} int a; char b; };\n"
	"struct derived : with_ctor { char c; };\n"
	"struct nothing {};\n"
	"struct plain_base { long a; char b; };\n"
	"#define ALIGNED(n) alignas(n)\n"
	"#else\n"
	"#define ALIGNED(n) _Alignas(n)\n"
	"#endif\n"
	"enum colour { RED, GREEN };\n"
	"struct inner { char a; int b; char c; };\n"
	"struct tight { char a; int b; } __attribute__((packed));\n"
	"typedef int wide __attribute__((aligned(16)));\n"
	"typedef float four __attribute__((vector_size(16)));\n"
	"union either { char text[5]; short s; };\n";

/* "%s" becomes the name. */
static const char *const member_forms[] = {
	"char %s", "char %s", "char %s", "short %s", "int %s", "long %s", "void *%s", "char %s[3]",
	"short %s[5]", "double %s", "enum colour %s", "struct inner %s", "union either %s",
	"unsigned %s : 3", "unsigned %s : 13", "unsigned char %s : 5", "unsigned long %s : 35",
	"unsigned short %s : 9", "int : 4", "int : 0", "long double %s", "ALIGNED(16) char %s",
	"ALIGNED(4) char %s", "wide %s", "four %s", "_Complex float %s", "struct tight %s",
	"int (*%s)(void)", "char *%s[2]"};
static const char *const base_forms[] = {
	"", "", "", " : with_ctor", " : with_table", " : derived", " : nothing", " : plain_base",
	" : with_table, with_ctor", " : nothing, plain_base"};

struct member_text {
	char name[24], text[80];
};

struct struct_text {
	const char *base;
	const char *attribute;
	struct member_text member[MEMBERS_MAX];
	size_t members;
	bool is_proposed;
	uint64_t best;
};

static struct struct_text structs[STRUCTS];
static uint32_t seed = 12345;

static uint32_t any(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

static void make_struct(struct struct_text *s, bool is_cxx)
{
	*s = (struct struct_text){.base = is_cxx ? base_forms[any(ARRAY_SIZE(base_forms))] : "",
				  .attribute = any(12) ? "" : "__attribute__((packed))"};
	s->members = 2 + any(MEMBERS_MAX - 2);
	for (size_t i = 0; i < s->members; i++) {
		struct member_text *m = &s->member[i];

		snprintf(m->name, sizeof(m->name), "m%zu", i);
		const char *form = member_forms[any(ARRAY_SIZE(member_forms))];

		while ((i == 0 || i + 1 == s->members) && !strstr(form, "%s"))
			form = member_forms[any(ARRAY_SIZE(member_forms))];
		snprintf(m->text, sizeof(m->text), form, m->name);
	}
	if (!is_cxx && any(10) == 0)
		snprintf(s->member[s->members - 1].text, 80, "char m%zu[]", s->members - 1);
}

static void write_source(const char *name)
{
	char *text = xstrdup(head);
	size_t size = strlen(text), room;
	char line[2000];

	room = size + STRUCTS * 1500ul;
	text = xrealloc(text, room, 1);
	for (size_t i = 0; i < STRUCTS; i++) {
		const struct struct_text *s = &structs[i];

		size += (size_t)snprintf(text + size, room - size, "struct s%zu%s {\n", i, s->base);
		for (size_t k = 0; k < s->members; k++)
			size += (size_t)snprintf(text + size, room - size, "	%s;\n",
						 s->member[k].text);
		size += (size_t)snprintf(text + size, room - size, "} %s v%zu;\n", s->attribute, i);
	}
	snprintf(line, sizeof(line), "int main(void)\n{\n");
	size += (size_t)snprintf(text + size, room - size, "%s", line);
	for (size_t i = 0; i < STRUCTS; i++)
		size += (size_t)snprintf(text + size, room - size,
					 "	printf(\"s %%zu s%zu\\n\", sizeof(v%zu));\n", i, i);
	snprintf(text + size, room - size,
		 "	puts(\"ready\"); fflush(stdout);\n	while (getchar() != EOF) ;\n"
		 "	return 0;\n}\n");
	layout_write(name, text);
	free(text);
}

static void move_member(struct struct_text *s, size_t from, size_t to)
{
	struct member_text m = s->member[from];

	assert_true(from >= to && from < s->members);
	memmove(&s->member[to + 1], &s->member[to], (from - to) * sizeof(m));
	s->member[to] = m;
}

/* What is left behind has no name, and had no effect: it lay in padding. */
static void reorder(struct struct_text *s, char *order)
{
	size_t to = 0;
	char *rest = NULL;

	for (char *name = strtok_r(order, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
		size_t from = to;

		while (from < s->members && strcmp(s->member[from].name, name) != 0)
			from++;
		move_member(s, from, to++);
	}
	s->members = to;
}

static uint64_t printed_size(const struct layout *l, size_t i)
{
	char name[16], *rest;

	snprintf(name, sizeof(name), " s%zu", i);
	uint64_t size = strtoull(l->facts[i] + 2, &rest, 10);

	assert_string_equal(rest, name);
	return size;
}

static size_t propose(struct layout *l)
{
	size_t proposed = 0;

	for (size_t i = 0; i < STRUCTS; i++) {
		char name[16], *order = NULL;

		snprintf(name, sizeof(name), "s%zu", i);
		uint32_t type = type_table_find(l->types, NULL, name);

		assert_int_equal(type_table_get(l->types, type)->size, printed_size(l, i));
		structs[i].best = struct_layout_best(l->types, type, &order);
		structs[i].is_proposed = structs[i].best != 0;
		if (!structs[i].is_proposed)
			continue;
		assert_true(structs[i].best < printed_size(l, i));
		reorder(&structs[i], order);
		free(order);
		proposed++;
	}
	return proposed;
}

static void check_sizes(const struct layout *l)
{
	size_t wrong = 0;

	for (size_t i = 0; i < STRUCTS; i++) {
		const struct struct_text *s = &structs[i];

		if (!s->is_proposed || s->best == printed_size(l, i))
			continue;
		print_message("s%zu: said %lu, is %lu:%s { ", i, s->best, printed_size(l, i),
			      s->base);
		for (size_t k = 0; k < s->members; k++)
			print_message("%s; ", s->member[k].text);
		print_message("} %s\n", s->attribute);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

/* @compile makes "p" of the file "s.c" or "s.cpp". */
static void check_proposals(const char *compile, bool is_cxx)
{
	const char *name = is_cxx ? "s.cpp" : "s.c";
	struct layout l;

	print_message("%s\n", compile);
	for (size_t i = 0; i < STRUCTS; i++)
		make_struct(&structs[i], is_cxx);
	write_source(name);
	assert_true(layout_run(compile));
	layout_start(&l, "p");
	layout_open(&l);
	size_t proposed = propose(&l);

	layout_close(&l);
	assert_true(proposed > STRUCTS / 8);
	write_source(name);
	assert_true(layout_run(compile));
	layout_start(&l, "p");
	layout_open(&l);
	check_sizes(&l);
	layout_close(&l);
}

#define HAS(compiler) "command -v " compiler " >/dev/null"

static void test_c(void **state)
{
	check_proposals("gcc -g -w -o p s.c", false);
	check_proposals("gcc -gdwarf-4 -w -o p s.c", false);
	if (layout_run(HAS("clang")))
		check_proposals("clang -g -w -o p s.c", false);
}

static void test_cxx(void **state)
{
	if (!layout_run(HAS("g++")))
		skip();
	check_proposals("g++ -g -w -o p s.cpp", true);
	if (layout_run(HAS("clang++")))
		check_proposals("clang++ -gdwarf-4 -fstandalone-debug -w -o p s.cpp", true);
}

static const char known_source[] =
	"#include <stdio.h>\n"
	"struct mixed { char kind; void *next; int count; char open; } mixed;\n"
	"struct good { void *next; int count; char kind; } good;\n"
	"struct bits { char a; unsigned x : 3; unsigned y : 20; void *p; char b; } bits;\n"
	"struct whole { char a; struct mixed m; char b; } whole;\n"
	"int main(void)\n"
	"{\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static void check_known(struct layout *l, const char *name, uint64_t padding, uint64_t best,
			const char *wanted)
{
	uint32_t type = type_table_find(l->types, NULL, name);
	char *order = NULL;

	assert_int_equal(struct_layout_padding(l->types, type), padding);
	assert_int_equal(struct_layout_best(l->types, type, &order), best);
	assert_string_equal(order ? order : "", wanted);
	free(order);
}

static void test_known(void **state)
{
	struct layout l;

	layout_write("k.c", known_source);
	assert_true(layout_run("gcc -g -o p k.c"));
	layout_start(&l, "p");
	layout_open(&l);
	check_known(&l, "mixed", 10, 16, "next, count, kind, open");
	check_known(&l, "good", 3, 0, "");
	check_known(&l, "bits", 7 + 4, 16, "p, x, y, a, b");
	check_known(&l, "whole", 14 + 10, 32, "m, a, b");
	assert_int_equal(struct_layout_padding(l.types, TYPE_NONE), 0);
	layout_close(&l);
}

static int set_up(void **state)
{
	return mkdtemp(layout_dir) ? 0 : -1;
}

static int tear_down(void **state)
{
	return layout_run("rm -rf \"$PWD\"") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known),
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_cxx),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
