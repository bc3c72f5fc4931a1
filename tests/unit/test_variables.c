/*
 * Variables and types of programs that print where these are, compiled with every kind of debug
 * information.
 */
#include "layout.h"

static const char c_source[] =
	"#include <pthread.h>\n"
	"#include <stddef.h>\n"
	"#include <stdio.h>\n"
	"#include <stdint.h>\n"
	"#include <unistd.h>\n"
	"struct node { struct node *next, **prev; };\n"
	"typedef struct { int kind; union { double real; struct { char tag; void *word; }; }; } value;\n"
	"enum color { RED, GREEN = 300 };\n"
	"struct session {\n"
	"	struct node link;\n"
	"	char name[17];\n"
	"	unsigned flags : 3, state : 7;\n"
	"	enum color color;\n"
	"	value values[4][3];\n"
	"	struct { short x; long y; } point;\n"
	"	int (*callback)(const struct session *s);\n"
	"	volatile const struct session *const parent;\n"
	"	struct hidden *hidden;\n"
	"	long tail[];\n"
	"};\n"
	"extern struct hidden { int inside; struct session *back; } hidden;\n"
	"struct session *global[10];\n"
	"static struct session one = {.name = \"one\"};\n"
	"static char unnamed[33] = {1};\n"
	"__thread struct node *own, *second = (void *)8;\n"
	"static __thread long counter[5];\n"
	"__attribute__((noinline)) static void *parse(long i)\n"
	"{\n"
	"	static struct { long a[3]; } cache = {{7}};\n"
	"	cache.a[1] += i;\n"
	"	{ static struct node inner; inner.next = (void *)&cache; if (i == 77) puts((char *)&inner); }\n"
	"	return &cache;\n"
	"}\n"
	"#define FIELD(type, field, path) printf(\"m %zu \" #type \" \" path \"\\n\", offsetof(struct type, field))\n"
	"static void print_thread(char c)\n"
	"{\n"
	"	printf(\"%c %p %zu own\\n\", c, (void *)&own, sizeof(own));\n"
	"	printf(\"%c %p %zu second\\n\", c, (void *)&second, sizeof(second));\n"
	"	printf(\"%c %p %zu layout.c: counter\\n\", c, (void *)counter, sizeof(counter));\n"
	"	printf(\"%c\\t%lx\\n\", c == 't' ? 'q' : 'p', (unsigned long)pthread_self());\n"
	"}\n"
	"static void *thread(void *mutex)\n"
	"{\n"
	"	own = (void *)&one;\n"
	"	print_thread('u');\n"
	"	pthread_mutex_unlock(mutex);\n"
	"	for (;;) pause();\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;\n"
	"	pthread_t other;\n"
	"	void *cache = parse(3);\n"
	"	one.hidden = &hidden; global[3] = &one; unnamed[2] = counter[1]++;\n"
	"	printf(\"v %p %zu global\\n\", (void *)global, sizeof(global));\n"
	"	printf(\"v %p %zu layout.c: one\\n\", (void *)&one, sizeof(one));\n"
	"	printf(\"v %p %zu layout.c: unnamed\\n\", (void *)unnamed, sizeof(unnamed));\n"
	"	printf(\"v %p %zu parse() cache\\n\", cache, sizeof(long) * 3);\n"
	"	printf(\"v %p %zu hidden\\n\", (void *)&hidden, sizeof(hidden));\n"
	"	printf(\"s %zu session\\ns %zu value\\ns %zu node\\n\", sizeof(one), sizeof(value), sizeof(struct node));\n"
	"	FIELD(session, link.prev, \"link.prev\"); FIELD(session, name[5], \"name[5]\");\n"
	"	FIELD(session, color, \"color\"); FIELD(session, values[2][1].kind, \"values[2][1].kind\");\n"
	"	FIELD(session, values[3][2].tag, \"values[3][2].real\");\n"
	"	FIELD(session, values[3][2].word, \"values[3][2].word\");\n"
	"	FIELD(session, point.y, \"point.y\"); FIELD(session, callback, \"callback\");\n"
	"	FIELD(session, parent, \"parent\"); FIELD(session, tail[4], \"tail[4]\");\n"
	"	FIELD(session, hidden, \"hidden\"); FIELD(hidden, back, \"back\");\n"
	"	print_thread('t');\n"
	"	pthread_mutex_lock(&mutex);\n"
	"	pthread_create(&other, NULL, thread, &mutex);\n"
	"	pthread_mutex_lock(&mutex);\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char hidden_source[] =
	"struct hidden { int inside; struct session *back; } hidden = {1};\n";

static const char cxx_source[] =
	"#include <pthread.h>\n"
	"#include <cstddef>\n"
	"#include <cstdio>\n"
	"namespace ns {\n"
	"template <typename T, int N> struct table { T *first; T all[N]; };\n"
	"class shape { public: virtual ~shape() {} virtual int area() { return 0; } protected: int id = 1; };\n"
	"struct named { const char *name; named() : name(\"n\") {} virtual int f() { return 2; } };\n"
	"struct square : public shape, public named { double side = 2; int area() override { return 4; } };\n"
	"struct left : virtual shape { long l = 1; };\n"
	"struct both : left { long b = 2; };\n"
	"struct holder {\n"
	"	static table<shape *, 4> all;\n"
	"	struct nested { int &ref; shape &&moved; int holder::*member; } *inside;\n"
	"	static square &get() { static square instance; return instance; }\n"
	"};\n"
	"table<shape *, 4> holder::all;\n"
	"inline namespace v1 { both *diamond; }\n"
	"namespace { square quiet; }\n"
	"static table<unsigned long, 2> own;\n"
	"thread_local square *per_thread;\n"
	"}\n"
	"enum class byte : unsigned char { a, b };\n"
	"struct packed { char c; byte b; ns::holder h; } __attribute__((packed)) plain;\n"
	"#define VAR(x, name) printf(\"v %p %zu \" name \"\\n\", (void *)&(x), sizeof(x))\n"
	"typedef ns::table<ns::shape *, 4> shapes;\n"
	"int main()\n"
	"{\n"
	"	ns::square &local = ns::holder::get();\n"
	"	ns::diamond = new ns::both; ns::holder::all.first = nullptr; ns::own.first = ns::own.all;\n"
	"	ns::holder::all.all[2] = ns::diamond; ns::per_thread = &ns::quiet;\n"
	"	VAR(ns::holder::all, \"ns::holder::all\"); VAR(local, \"ns::holder::get() instance\");\n"
	"	VAR(ns::diamond, \"ns::v1::diamond\"); VAR(ns::quiet, \"layout.cpp: ns::quiet\");\n"
	"	VAR(ns::own, \"layout.cpp: ns::own\"); VAR(plain, \"plain\");\n"
	"	printf(\"t %p %zu ns::per_thread\\n\", (void *)&ns::per_thread, sizeof(ns::per_thread));\n"
	"	printf(\"s %zu ns::square\\ns %zu ns::table<ns::shape*, 4>\\ns %zu packed\\n\", sizeof(ns::square),\n"
	"	       sizeof(ns::table<ns::shape *, 4>), sizeof(packed));\n"
	"	printf(\"s %zu ns::holder::nested\\n\", sizeof(ns::holder::nested));\n"
	"	printf(\"m %zu ns::square side\\n\", (size_t)((char *)&local.side - (char *)&local));\n"
	"	printf(\"m %zu ns::square name\\n\", (size_t)((char *)&local.name - (char *)&local));\n"
	"	printf(\"m %zu packed h.inside\\n\", offsetof(packed, h.inside));\n"
	"	printf(\"m %zu ns::table<ns::shape *, 4> all[3]\\n\", offsetof(shapes, all[3]));\n"
	"	printf(\"q\\t%lx\\nready\\n\", (unsigned long)pthread_self()); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

/* Names of types are its crate's, "layout_rs". */
static const char rust_source[] =
	"#![allow(dead_code, static_mut_refs)]\n"
	"use std::mem::{offset_of, size_of};\n"
	"pub struct Order { pub id: u8, pub name: String, pub next: Option<Box<Order>>, pub code: u32 }\n"
	"pub enum Shape { Circle(f64), Square { side: u32, label: String }, Empty }\n"
	"pub struct Cache { pub orders: Vec<Order>, pub shape: Shape, flag: Option<u8>, pair: (u16, u64) }\n"
	"static mut CACHE: Option<Cache> = None;\n"
	"static TABLE: [u16; 7] = [1; 7];\n"
	"mod inner {\n"
	"	pub static mut COUNTER: u32 = 3;\n"
	"	pub fn count() -> *const u64 { static mut HITS: u64 = 0; unsafe { HITS += 1; &raw const HITS } }\n"
	"}\n"
	"fn main() {\n"
	"	let shape = Shape::Square { side: 2, label: String::new() };\n"
	"	unsafe { CACHE = Some(Cache { orders: Vec::new(), shape, flag: Some(1), pair: (1, 2) }); }\n"
	"	println!(\"v {:p} {} layout_rs::CACHE\", &raw const CACHE, size_of::<Option<Cache>>());\n"
	"	println!(\"v {:p} {} layout_rs::TABLE\", &TABLE, 14);\n"
	"	println!(\"v {:p} {} layout_rs::inner::COUNTER\", &raw const inner::COUNTER, 4);\n"
	"	println!(\"v {:p} {} layout_rs::inner::count::HITS\", inner::count(), 8);\n"
	"	println!(\"s {} layout_rs::Order\", size_of::<Order>());\n"
	"	println!(\"s {} layout_rs::Shape\", size_of::<Shape>());\n"
	"	println!(\"m {} layout_rs::Order id\", offset_of!(Order, id));\n"
	"	println!(\"m {} layout_rs::Order code\", offset_of!(Order, code));\n"
	"	println!(\"m {} layout_rs::Cache pair.__1\", offset_of!(Cache, pair) + offset_of!((u16, u64), 1));\n"
	"	println!(\"m {} layout_rs::Cache orders.len\", offset_of!(Cache, orders) + 16);\n"
	"	println!(\"ready\");\n"
	"	let _ = std::io::stdin().read_line(&mut String::new());\n"
	"}\n";

/* -- checks -- */

static uint64_t number_of(const char *name, const char *fact)
{
	char *end;
	uint64_t value = strtoull(fact, &end, name[0] == 'x' ? 16 : 0);

	if (end == fact)
		fail_msg("no number: %s", fact);
	return value;
}

/* "ADDRESS SIZE NAME" of a variable; @tid: of which thread. */
static void check_variable(struct layout *l, const char *fact, pid_t tid, bool has_debug)
{
	char *rest;
	taddr_t addr = strtoull(fact, &rest, 16);
	uint64_t size = strtoull(rest, &rest, 10), at[] = {0, size / 2, size - 1};
	struct variable_place place;

	for (size_t i = 0; i < 3; i++) {
		if (!variables_find(l->variables, addr + at[i], &place))
			fail_msg("not found: %s", fact);
		const struct program_variable *p = variables_get(l->variables, place.variable);

		assert_string_equal(variables_name(l->variables, place.variable), rest + 1);
		assert_int_equal(place.offset, at[i]);
		assert_int_equal(place.start, addr);
		assert_int_equal(place.tid, tid);
		if (size <= 1000) /* with a flexible member it has more than its type */
			assert_true(p->size >= size);
		if (has_debug != (place.type != TYPE_NONE))
			fail_msg("%s: %s", fact, has_debug ? "no type" : "a type");
		if (has_debug)
			assert_int_equal(type_table_get(l->types, place.type)->size, size);
	}
}

static uint32_t find_type(struct layout *l, const char *name)
{
	uint32_t type = type_table_find(l->types, NULL, name);

	if (type == TYPE_NONE)
		fail_msg("no type %s", name);
	return type;
}

/* "OFFSET TYPE PATH" */
static void check_member(struct layout *l, const char *fact)
{
	char name[256], *rest;
	uint64_t offset = strtoull(fact, &rest, 10);
	const char *path = strrchr(fact, ' ') + 1;

	snprintf(name, sizeof(name), "%.*s", (int)(path - 1 - (rest + 1)), rest + 1);
	char *found = type_table_path(l->types, find_type(l, name), offset, NULL);

	if (strcmp(found, path) != 0)
		fail_msg("%s: found %s", fact, found);
	free(found);
}

static void check_facts(struct layout *l, bool has_debug)
{
	for (size_t i = 0; i < l->count; i++) {
		const char *fact = l->facts[i] + 2;

		switch (l->facts[i][0]) {
		case 'p':
			variables_add_thread(l->variables, 2, number_of("x", fact), &l->memory);
			break;
		case 'q':
			variables_add_thread(l->variables, 1, number_of("x", fact), &l->memory);
			break;
		}
	}
	for (size_t i = 0; i < l->count; i++) {
		const char *fact = l->facts[i] + 2;
		char *rest;

		switch (l->facts[i][0]) {
		case 'v':
			check_variable(l, fact, 0, has_debug);
			break;
		case 't':
		case 'u':
			check_variable(l, fact, l->facts[i][0] == 't' ? 1 : 2, has_debug);
			break;
		case 'm':
			if (has_debug)
				check_member(l, fact);
			break;
		case 's':
			if (!has_debug || strstr(fact, "value"))
				break;
			uint64_t size = strtoull(fact, &rest, 10);

			assert_int_equal(type_table_get(l->types, find_type(l, rest + 1))->size,
					 size);
			break;
		}
	}
}

static void check_program(const char *program, bool has_debug)
{
	struct layout l;

	layout_start(&l, program);
	layout_open(&l);
	check_facts(&l, has_debug);
	layout_close(&l);
}

/* -- tests -- */

#define HAS(compiler) "command -v " compiler " >/dev/null"

static void check_c(const char *compile)
{
	char *command = xasprintf("%s -pthread -o p layout.c hidden.c", compile);

	print_message("%s\n", compile);
	assert_true(layout_run(command));
	free(command);
	check_program("p", true);
}

static void test_c(void **state)
{
	check_c("gcc -g -O0");
	check_c("gcc -gdwarf-4 -O2");
	check_c("gcc -g -O2 -gz -flto");
	check_c("gcc -g -O1 -gsplit-dwarf");
	check_c("gcc -g -O1 -static");
	if (!layout_run(HAS("clang")))
		return;
	check_c("clang -gdwarf-4 -O2");
	check_c("clang -gdwarf-5 -O2 -gsplit-dwarf");
	check_c("clang -gdwarf-5 -O0");
}

/* The .dwo files of the program p are in one file, by the first of these tools that is there. */
static void check_package(const char *compile)
{
	static const char pack[] = "for tool in llvm-dwp llvm-dwp-14 dwp; do $tool -e p -o p.dwp "
				   "2>/dev/null && rm *.dwo && exit; done; exit 1";
	char *command = xasprintf("rm -f *.dwo *.dwp; %s -pthread -o p layout.c hidden.c", compile);

	print_message("%s, packed\n", compile);
	assert_true(layout_run(command));
	free(command);
	if (!layout_run(pack))
		return; /* binutils' dwp knows no DWARF 5 */
	check_program("p", true);
	assert_true(layout_run("rm p.dwp"));
}

static void test_packages(void **state)
{
	if (!layout_run("command -v llvm-dwp || command -v llvm-dwp-14 || command -v dwp"))
		skip();
	check_package("gcc -g -O1 -gsplit-dwarf");
	check_package("gcc -gdwarf-4 -O0 -gsplit-dwarf");
	if (layout_run(HAS("clang")))
		check_package("clang -gdwarf-5 -O2 -gsplit-dwarf");
}

static void check_cxx(const char *compile)
{
	char *command = xasprintf("%s -pthread -o p layout.cpp", compile);

	print_message("%s\n", compile);
	assert_true(layout_run(command));
	free(command);
	check_program("p", true);
}

static void test_cxx(void **state)
{
	if (!layout_run(HAS("g++")))
		skip();
	check_cxx("g++ -g -O2");
	check_cxx("g++ -gdwarf-4 -O0 -fdebug-types-section");
	check_cxx("g++ -g -O1 -fdebug-types-section");
	if (!layout_run(HAS("clang++")))
		return;
	check_cxx("clang++ -gdwarf-5 -O2");
	check_cxx("clang++ -gdwarf-4 -O0 -gsplit-dwarf");
}

/* The value of member @name of @type that says which variant is there; -1: none has that name. */
static int64_t variant_value(struct layout *l, uint32_t type, const char *name, uint16_t *flags_out)
{
	for (uint32_t i = 0; i < type_table_get(l->types, type)->members; i++) {
		const struct data_member *m = type_table_member(l->types, type, i);

		if (m->flags & MEMBER_VARIANT && strcmp(m->name, name) == 0) {
			*flags_out = m->flags;
			return (int64_t)m->value;
		}
	}
	return -1;
}

static void check_rust(const char *compile)
{
	char *command = xasprintf("%s -o p layout_rs.rs", compile);
	struct layout l;
	uint16_t flags;

	print_message("%s\n", compile);
	assert_true(layout_run(command));
	free(command);
	layout_start(&l, "p");
	layout_open(&l);
	check_facts(&l, true);
	uint32_t shape = find_type(&l, "layout_rs::Shape");

	/* values that no capacity has say that it is one of the others */
	assert_true(type_table_get(l.types, shape)->discriminant);
	assert_int_equal(variant_value(&l, shape, "Circle", &flags), INT64_MIN);
	assert_int_equal(variant_value(&l, shape, "Empty", &flags), INT64_MIN + 2);
	assert_int_equal(variant_value(&l, shape, "Square", &flags), 0);
	assert_true(flags & MEMBER_DEFAULT);
	layout_close(&l);
}

static void test_rust(void **state)
{
	if (!layout_run(HAS("rustc")))
		skip();
	check_rust("rustc -g");
	check_rust("rustc -C debuginfo=2 -C opt-level=2");
}

/* The debug information is in another file. */
static void test_separate(void **state)
{
	assert_true(layout_run("gcc -g -O1 -pthread -o p layout.c hidden.c && "
			       "objcopy --only-keep-debug p p.debug && strip p && "
			       "objcopy --add-gnu-debuglink=p.debug p"));
	check_program("p", true);
}

/* Only symbols. */
static void test_symbols_alone(void **state)
{
	struct layout l;

	assert_true(layout_run("gcc -O0 -pthread -o p layout.c hidden.c"));
	layout_start(&l, "p");
	layout_open(&l);
	for (size_t i = 0; i < l.count; i++) /* a symbol does not say which function it is of */
		if (strstr(l.facts[i], "parse() cache")) {
			char *old = l.facts[i];

			l.facts[i] = xasprintf("%.*slayout.c: cache",
					       (int)(strstr(old, "parse()") - old), old);
			free(old);
		}
	check_facts(&l, false);
	layout_close(&l);
}

/* Neither: nothing is known, and nothing is guessed. */
static void test_stripped(void **state)
{
	struct layout l;
	struct variable_place place;

	assert_true(layout_run("gcc -O0 -pthread -s -o p layout.c hidden.c"));
	layout_start(&l, "p");
	layout_open(&l);
	for (size_t i = 0; i < l.count; i++)
		if (l.facts[i][0] == 'v')
			assert_false(variables_find(l.variables, strtoull(l.facts[i] + 2, NULL, 16),
						    &place));
	layout_close(&l);
}

/* Types that no DWARF has. */
static void test_made(void **state)
{
	struct type_table *t = type_table_new(NULL);
	uint32_t pointer = type_table_pointer_to(t, TYPE_NONE);
	uint32_t array = type_table_array_of(t, pointer, 6);
	const struct data_member member[] = {
		{.name = "next", .type = pointer, .is_resolved = true},
		{.name = "all", .offset = 8, .type = array, .is_resolved = true},
		{.name = "beyond", .offset = 52, .type = pointer, .is_resolved = true},
	};
	uint32_t type = type_table_declare(t, "made", 56, member, 3);
	char *name = type_table_name(t, array), *path = type_table_path(t, type, 24, NULL);

	assert_string_equal(name, "void *[6]");
	assert_string_equal(path, "all[2]");
	assert_int_equal(type_table_pointer_to(t, TYPE_NONE), pointer);
	assert_int_equal(type_table_declare(t, "made", 56, member, 3), type);
	assert_int_equal(type_table_alignment(t, type), 8);
	assert_int_equal(type_table_get(t, type_table_array_of(t, array, UINT64_MAX / 8))->size, 0);
	free(name);
	free(path);
	type_table_free(t);
}

static int set_up(void **state)
{
	if (!mkdtemp(layout_dir))
		return -1;
	layout_write("layout.c", c_source);
	layout_write("hidden.c", hidden_source);
	layout_write("layout.cpp", cxx_source);
	layout_write("layout_rs.rs", rust_source);
	return 0;
}

static int tear_down(void **state)
{
	return layout_run("rm -rf \"$PWD\"") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_c),
		cmocka_unit_test(test_packages),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_separate),
		cmocka_unit_test(test_symbols_alone),
		cmocka_unit_test(test_stripped),
		cmocka_unit_test(test_made),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
