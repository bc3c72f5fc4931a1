/*
 * Types of blocks in programs that print each block's address, size and what it is.
 *
 *	b ADDRESS SIZE TYPE     a block, and the type that it must be given; "-": none
 *	f ADDRESS OFFSET FIELD  what the word at @OFFSET of the block is called
 */
#include "layout.h"

#include "graph/typed_walk.h"

static const char c_source[] =
	"#include <stddef.h>\n"
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"struct order { long id; char *name; struct order *next; double price; };\n"
	"struct session { char *user; struct order *orders; struct order **index; void *opaque; int open; };\n"
	"struct message { int length; struct session *from; struct order parts[]; };\n"
	"struct small { short s; };\n"
	"static struct { struct session *by_user[4]; struct message *last; } cache;\n"
	"struct order *wrong; struct small *bytes; struct session *many; struct small *large;\n"
	"static void *block(size_t size, const char *type)\n"
	"{\n"
	"	void *p = calloc(1, size);\n"
	"	printf(\"b %p %zu %s\\n\", p, size, type);\n"
	"	return p;\n"
	"}\n"
	"static struct order *order(const char *name)\n"
	"{\n"
	"	struct order *o = block(sizeof(*o), \"order\");\n"
	"	o->name = strcpy(block(100, \"char[]\"), name);\n"
	"	o->id = 0x4141414141414141;\n"
	"	return o;\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	struct session *s = cache.by_user[2] = block(sizeof(*s), \"session\");\n"
	"	s->user = strcpy(block(30, \"char[]\"), \"u\");\n"
	"	for (int i = 0; i < 20; i++) { struct order *o = order(\"o\"); o->next = s->orders; s->orders = o; }\n"
	"	s->index = block(20 * sizeof(*s->index), \"order *[]\");\n"
	"	for (int i = 0; i < 20; i++) s->index[i] = order(\"indexed\");\n"
	"	s->opaque = block(77, \"-\");\n"
	"	cache.last = block(sizeof(struct message) + 5 * sizeof(struct order), \"message\");\n"
	"	cache.last->from = s; cache.last->parts[4].name = block(40, \"char[]\");\n"
	"	many = block(50 * sizeof(*many), \"session[]\");\n"
	"	for (int i = 0; i < 50; i++) many[i].user = block(33, \"char[]\");\n"
	"	wrong = block(8, \"-\"); bytes = block(2, \"small\"); large = block(5000, \"small[]\");\n"
	"	printf(\"f %p %zu orders\\n\", (void *)s, offsetof(struct session, orders));\n"
	"	printf(\"f %p %zu next\\n\", (void *)s->orders, offsetof(struct order, next));\n"
	"	printf(\"f %p %zu [*].user\\n\", (void *)many, 3 * sizeof(*many));\n"
	"	printf(\"f %p %zu parts[*].name\\n\", (void *)cache.last, offsetof(struct message, parts[4].name));\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char cxx_source[] =
	"#include <cstdio>\n"
	"#include <cstdlib>\n"
	"#include <deque>\n"
	"#include <list>\n"
	"#include <map>\n"
	"#include <memory>\n"
	"#include <new>\n"
	"#include <optional>\n"
	"#include <forward_list>\n"
	"#include <variant>\n"
	"#include <set>\n"
	"#include <string>\n"
	"#include <unordered_map>\n"
	"#include <vector>\n"
	"struct note { void *p; size_t size; } notes[4096]; size_t count;\n"
	"static bool is_noting;\n"
	"void *operator new(size_t size) { void *p = malloc(size); if (is_noting) notes[count++] = {p, size}; return p; }\n"
	"void operator delete(void *p) noexcept { for (auto &n : notes) if (n.p == p) n.p = nullptr; free(p); }\n"
	"void operator delete(void *p, size_t) noexcept { operator delete(p); }\n"
	"static void expect(const char *type)\n"
	"{\n"
	"	for (size_t i = 0; i < count; i++)\n"
	"		if (notes[i].p) printf(\"b %p %zu %s\\n\", notes[i].p, notes[i].size, type);\n"
	"	count = 0;\n"
	"}\n"
	"struct shape { virtual ~shape() {} int id = 1; };\n"
	"struct named { virtual ~named() {} void *more[3] = {}; };\n"
	"struct square : shape, named { double *sides = nullptr; };\n"
	"struct Order { long id; char *text; };\n"
	"struct Session { std::vector<Order *> orders; std::string name; };\n"
	"#ifdef _LIBCPP_VERSION\n"
	"#define STRING \"std::__1::basic_string<char, std::__1::char_traits<char>, std::__1::allocator<char> >\"\n"
	"#define PAIR(to) \"node of std::__1::__value_type<int, \" #to \" *>\"\n"
	"#define HASH_PAIR(to) \"node of std::__1::__hash_value_type<int, \" #to \" *>\"\n"
	"#else\n"
	"#define STRING \"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >\"\n"
	"#define HASH_PAIR PAIR\n"
	"#ifdef __clang__\n"
	"#define PAIR(to) \"node of std::pair<const int, \" #to \" *>\"\n"
	"#else\n"
	"#define PAIR(to) \"node of std::pair<int const, \" #to \"*>\"\n"
	"#endif\n"
	"#endif\n"
	"std::optional<Order *> some, no_more; std::variant<int, Session *, Order *> either; std::optional<std::string> word;\n"
	"std::unordered_map<int, Order *> crowded; std::forward_list<Session *> forward;\n"
	"std::vector<Session> sessions;\n"
	"std::map<int, Session *> by_user;\n"
	"std::unordered_map<int, Order *> by_id;\n"
	"std::list<Order> listed;\n"
	"std::set<std::string> words;\n"
	"std::unique_ptr<shape> owned; named *second; std::shared_ptr<Session> shared;\n"
	"std::vector<Order *> crowd; std::deque<Order> waiting; std::vector<long> none;\n"
	"int main()\n"
	"{\n"
	"	is_noting = true;\n"
	"	sessions.reserve(10); sessions.resize(3); expect(\"Session[]\");\n"
	"	sessions[1].name = \"a name that does not fit in the string itself\"; expect(\"char[]\");\n"
	"	sessions[1].orders.resize(7); expect(\"Order *[]\");\n"
	"	for (auto &o : sessions[1].orders) o = new Order();\n"
	"	expect(\"Order\");\n"
	"	for (int i = 0; i < 9; i++) by_user[i];\n"
	"	expect(PAIR(Session));\n"
	"	for (auto &e : by_user) e.second = new Session();\n"
	"	expect(\"Session\");\n"
	"	by_id.reserve(100); count = 0; crowded.reserve(5);\n"
	"#ifdef _LIBCPP_VERSION\n"
	"	count = 0;\n"
	"#else\n"
	"	expect(\"std::__detail::_Hash_node_base *[]\");\n"
	"#endif\n"
	"	for (int i = 0; i < 9; i++) by_id[i];\n"
	"	expect(HASH_PAIR(Order));\n"
	"	for (int i = 0; i < 5; i++) crowded[i];\n"
	"	expect(HASH_PAIR(Order));\n"
	"	for (auto &e : crowded) e.second = new Order();\n"
	"	expect(\"Order\");\n"
	"	crowd.resize(600000); expect(\"Order *[]\");\n"
	"	for (size_t i = 0; i < 600000; i += 100000) crowd[i + 99999] = new Order; expect(\"Order\");\n"
	"	some = new Order; either = new Order; expect(\"Order\");\n"
	"	word = std::string(70, 'w'); expect(\"char[]\");\n"
	"	for (int i = 0; i < 3; i++) forward.push_front(nullptr);\n"
	"#ifdef _LIBCPP_VERSION\n"
	"	expect(\"std::__1::__forward_list_node<Session *, void *>\");\n"
	"#else\n"
	"	expect(\"node of Session *\");\n"
	"#endif\n"
	"	for (auto &f : forward) f = new Session();\n"
	"	expect(\"Session\");\n"
	"	for (auto &e : by_id) e.second = new Order();\n"
	"	expect(\"Order\");\n"
	"	for (int i = 0; i < 5; i++) listed.push_back({});\n"
	"	expect(\"node of Order\");\n"
	"	words.insert(\"b\"); words.insert(\"c\");\n"
	"	expect(\"node of \" STRING);\n"
	"	square *one = new square; owned.reset(one); square *two = new square; second = two; expect(\"square\");\n"
	"	two->sides = new double[50]; expect(\"double[]\");\n"
	"	waiting.resize(3); count = 0;\n"
	"	shared = std::make_shared<Session>();\n"
	"#if defined(_LIBCPP_VERSION)\n"
	"	expect(\"std::__1::__shared_ptr_emplace<Session, std::__1::allocator<Session> >\");\n"
	"#elif defined(__clang__)\n" /* names the last argument by its enumerator, unlike the class's table */
	"	expect(\"std::_Sp_counted_base<__gnu_cxx::_S_atomic>\");\n"
	"#else\n"
	"	expect(\"std::_Sp_counted_ptr_inplace<Session, std::allocator<void>, (__gnu_cxx::_Lock_policy)2>\");\n"
	"#endif\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char glib_source[] =
	"#include <glib.h>\n"
	"#include <malloc.h>\n"
	"#include <stdio.h>\n"
	"struct order { long id; char *name; } *first;\n"
	"GPtrArray *orders; GString *text; GList *list; GSList *slist;\n"
	"static void *block(void *p, const char *type)\n"
	"{\n"
	"	printf(\"b %p %zu %s\\n\", p, malloc_usable_size(p) - 8, type);\n"
	"	return p;\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	orders = block(g_ptr_array_new(), \"_GPtrArray\");\n"
	"	text = block(g_string_new(NULL), \"_GString\");\n"
	"	for (int i = 0; i < 40; i++) {\n"
	"		g_ptr_array_add(orders, block(g_malloc(sizeof(struct order)), \"-\"));\n"
	"		g_string_append(text, \"some text\");\n"
	"		list = block(g_list_prepend(list, NULL), \"_GList\");\n"
	"		slist = block(g_slist_prepend(slist, NULL), \"_GSList\");\n"
	"	}\n"
	"	block(orders->pdata, \"void *[]\");\n"
	"	block(text->str, \"char[]\");\n"
	"	first = block(g_new0(struct order, 1), \"order\");\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char rust_source[] =
	"#![allow(dead_code, static_mut_refs)]\n"
	"use std::collections::HashMap;\n"
	"use std::mem::size_of;\n"
	"use std::rc::Rc;\n"
	"pub struct Order { pub id: u64, pub name: String, pub next: Option<Box<Order>> }\n"
	"pub enum Shape { Circle(f64), Named { label: Box<Order> }, Empty }\n"
	"pub struct Cache { by_user: HashMap<u64, Box<Order>>, crowd: HashMap<u64, Option<Box<Order>>>, orders: Vec<Order>, shapes: Vec<Shape>, shared: Rc<Order> }\n"
	"static mut CACHE: Option<Cache> = None;\n"
	"fn order(name: &str, next: Option<Box<Order>>) -> Order { Order { id: 0x4242424242424242, name: name.to_string(), next } }\n"
	"fn print<T>(p: *const T, size: usize, what: &str) { println!(\"b {:p} {} {}\", p, size, what); }\n"
	/* one of its words leads to the control bytes, which are behind the elements */
	"fn print_table<V>(m: &HashMap<u64, V>, what: &str) {\n"
	"	let (each, places) = (size_of::<(u64, V)>(), (m.capacity() * 8 / 7).next_power_of_two());\n"
	"	let last = m.keys().map(|k| k as *const u64 as usize).max().unwrap();\n"
	"	let word = m as *const _ as *const usize;\n"
	"	for i in 0..size_of::<HashMap<u64, V>>() / 8 {\n"
	"		let control = unsafe { *word.add(i) };\n"
	"		if control > last && control - last <= places * each { print((control - places * each) as *const u8, places * (each + 1) + 16, what); }\n"
	"	}\n"
	"}\n"
	"fn main() {\n"
	"	let mut c = Cache { by_user: HashMap::new(), crowd: HashMap::new(), orders: Vec::with_capacity(20), shapes: Vec::new(), shared: Rc::new(order(\"rc\", None)) };\n"
	"	for i in 0..9 { c.orders.push(order(\"o\", if i == 4 { Some(Box::new(order(\"next\", None))) } else { None })); }\n"
	"	for i in 0..30 { c.by_user.insert(i, Box::new(order(\"hashed\", None))); }\n"
	"	for i in 0..40000u64 { c.crowd.insert(i, if i % 4000 == 0 { Some(Box::new(order(\"far\", None))) } else { None }); }\n"
	"	c.shapes.push(Shape::Circle(1.0)); c.shapes.push(Shape::Named { label: Box::new(order(\"shape\", None)) }); c.shapes.push(Shape::Empty);\n"
	"	let each = size_of::<Order>();\n"
	"	print(c.orders.as_ptr(), 20 * each, \"typed_rs::Order[]\");\n"
	"	print(c.orders[4].next.as_deref().unwrap(), each, \"typed_rs::Order\");\n"
	"	print(c.orders[4].next.as_deref().unwrap().name.as_ptr(), 4, \"u8[]\");\n"
	"	for b in c.crowd.values().flatten() { print(&**b, each, \"typed_rs::Order\"); }\n"
	"	print_table(&c.crowd, \"(u64, core::option::Option<alloc::boxed::Box<typed_rs::Order, alloc::alloc::Global>>)[]\");\n"
	"	print_table(&c.by_user, \"(u64, alloc::boxed::Box<typed_rs::Order, alloc::alloc::Global>)[]\");\n"
	"	for b in c.by_user.values() { print(&**b, each, \"typed_rs::Order\"); }\n"
	"	print(c.shapes.as_ptr(), c.shapes.capacity() * size_of::<Shape>(), \"typed_rs::Shape[]\");\n"
	"	if let Shape::Named { label } = &c.shapes[1] { print(&**label, each, \"typed_rs::Order\"); }\n"
	"	print(Rc::as_ptr(&c.shared).wrapping_byte_sub(16), each + 16, \"alloc::rc::RcInner<typed_rs::Order>\");\n"
	"	print(c.shared.name.as_ptr(), 2, \"u8[]\");\n"
	"	unsafe { CACHE = Some(c); }\n"
	"	println!(\"ready\");\n"
	"	let _ = std::io::stdin().read_line(&mut String::new());\n"
	"}\n";

/* -- blocks that the program printed -- */

struct printed_block {
	taddr_t start, end;
	const char *type;
};

struct printed {
	VEC(struct printed_block) list; /* ascending */
};

static uint32_t find_block(void *ctx, taddr_t addr)
{
	struct printed *p = ctx;
	const struct printed_block *b = vec_find(&p->list, addr);

	return b ? (uint32_t)(b - p->list.data) : TYPED_NO_BLOCK;
}

static void get_extent(void *ctx, uint32_t block, struct typed_extent *out)
{
	const struct printed_block *b = &((struct printed *)ctx)->list.data[block];

	*out = (struct typed_extent){b->start, b->end - b->start};
}

static void read_blocks(struct layout *l, struct printed *p)
{
	*p = (struct printed){0};
	for (size_t i = 0; i < l->count; i++) {
		char *rest;

		if (l->facts[i][0] != 'b')
			continue;
		taddr_t start = strtoull(l->facts[i] + 2, &rest, 16);
		uint64_t size = strtoull(rest, &rest, 10);

		/* glibc's usable size */
		*vec_add(&p->list) = (struct printed_block){
			start, start + MAX(ROUND_UP(size + 8, UINT64_C(16)) - 8, UINT64_C(24)),
			rest + 1};
	}
	vec_sort(&p->list, taddr_compare);
}

static void check_field(struct layout *l, const struct typed_walk *w, const char *fact)
{
	char *rest;
	taddr_t addr = strtoull(fact, &rest, 16);
	uint64_t offset = strtoull(rest, &rest, 10);
	char *field = typed_walk_path(w, w->type[w->heap->find(w->heap->ctx, addr)], offset);

	assert_string_equal(field, rest + 1);
	free(field);
}

static void check_blocks(struct layout *l, const struct typed_walk *w, const struct printed *p)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < p->list.count; i++) {
		char *name = type_table_name(l->types, w->type[i]);
		const char *found = w->type[i] == TYPE_NONE ? "-" : name;

		if (strcmp(found, p->list.data[i].type) != 0 && wrong++ < 10)
			print_message("%lx %lu: %s, but is %s\n", p->list.data[i].start,
				      p->list.data[i].end - p->list.data[i].start, found,
				      p->list.data[i].type);
		free(name);
	}
	assert_int_equal(wrong, 0);
	for (size_t i = 0; i < l->count; i++)
		if (l->facts[i][0] == 'f')
			check_field(l, w, l->facts[i] + 2);
}

static void add_roots(struct layout *l, struct typed_walk *w)
{
	uint32_t count = variables_count(l->variables);

	for (uint32_t i = 0; i < count; i++) {
		const struct program_variable *v = variables_get(l->variables, i);

		if (!v->is_thread_local)
			typed_walk_add_root(w, v->start, v->type);
	}
}

static void check_program(const char *compile)
{
	struct layout l;
	struct printed p;
	struct typed_walk w;

	print_message("%s\n", compile);
	assert_true(layout_run(compile));
	layout_start(&l, "p");
	layout_open(&l);
	read_blocks(&l, &p);
	assert_true(p.list.count > 30);
	struct containers *c = containers_new();
	const struct typed_heap heap = {
		.types = l.types, .containers = c, .memory = &l.memory,
		.blocks = (uint32_t)p.list.count, .find = find_block, .extent = get_extent,
		.ctx = &p};

	typed_walk_init(&w, &heap);
	add_roots(&l, &w);
	typed_walk_run(&w);
	check_blocks(&l, &w, &p);
	typed_walk_deinit(&w);
	containers_free(c);
	vec_deinit(&p.list);
	layout_close(&l);
}

#define HAS(compiler) "command -v " compiler " >/dev/null"

static void test_c(void **state)
{
	check_program("gcc -g -O2 -o p typed.c");
	if (layout_run(HAS("clang")))
		check_program("clang -gdwarf-4 -O0 -o p typed.c");
}

static void test_cxx(void **state)
{
	if (!layout_run(HAS("g++")))
		skip();
	check_program("g++ -g -O1 -o p typed.cpp");
	if (layout_run(HAS("clang++")))
		check_program("clang++ -std=c++17 -gdwarf-5 -O0 -fstandalone-debug -o p typed.cpp");
}

/* PTMEM_LIBCXX: flags for one that is not installed. */
static void test_libcxx(void **state)
{
	const char *flags = getenv("PTMEM_LIBCXX") ?: "-stdlib=libc++";
	char *compile = xasprintf("clang++ -std=c++17 -g -O1 -fstandalone-debug -o p typed.cpp %s",
				  flags);
	char *quiet = xasprintf("%s 2>/dev/null", compile);
	bool is_there = layout_run(quiet);

	if (is_there)
		check_program(compile);
	free(quiet);
	free(compile);
	if (!is_there)
		skip();
}

#define GLIB "pkg-config --cflags --libs glib-2.0"

static void test_glib(void **state)
{
	if (!layout_run(GLIB " >/dev/null 2>&1"))
		skip();
	setenv("G_SLICE", "always-malloc", 1); /* before 2.76 it has an allocator of its own */
	check_program("gcc -g -o p typed_glib.c $(" GLIB ")");
}

static void test_rust(void **state)
{
	if (!layout_run(HAS("rustc")))
		skip();
	check_program("rustc -g -o p typed_rs.rs");
}

/* Descriptions of the user's. */
static void test_descriptions(void **state)
{
	struct containers *c = containers_new();
	char *why = NULL;

	assert_int_equal(containers_add(c, "# a comment\n\n  my::list<*\tnodes root=head next=n\n", &why),
			 0);
	assert_int_equal(containers_add(c, "\nA array begin=b", &why), 2);
	assert_string_equal(why, "A: end= or size= is missing");
	free(why);
	assert_int_equal(containers_add(c, "A kind begin=b", &why), 1);
	free(why);
	assert_int_equal(containers_add(c, "A nodes root=b colour=blue", &why), 1);
	assert_string_equal(why, "A: 'colour' is no key with a value, or is repeated");
	free(why);
	layout_write("list.txt", "A pointer\nB\n");
	char *path = xasprintf("%s/list.txt", layout_dir), *expected = xasprintf(
		"%s:2: B: it has no kind (array, string, nodes, swiss, optional, variant, wrapper or "
		"pointer)", path);

	assert_false(containers_add_file(c, path, &why));
	assert_string_equal(why, expected);
	free(why);
	free(path);
	free(expected);
	containers_free(c);
}

static int set_up(void **state)
{
	if (!mkdtemp(layout_dir))
		return -1;
	layout_write("typed.c", c_source);
	layout_write("typed.cpp", cxx_source);
	layout_write("typed_glib.c", glib_source);
	layout_write("typed_rs.rs", rust_source);
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
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_libcxx),
		cmocka_unit_test(test_glib),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_descriptions),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
