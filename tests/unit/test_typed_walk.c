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

/*
 * Blocks that begin with a small struct: arrays of it, and pools, where something else follows.
 * Pools are multiples of the struct's size, as far as an allocator can say that.
 */
static const char pool_source[] =
	"#include <stdio.h>\n"
	"#include <stdlib.h>\n"
	"#include <string.h>\n"
	"struct pool24 { struct pool24 *next; char *at; int left; };\n"
	"struct pool40 { struct pool40 *next; char *at, *end; long used, size; };\n"
	"struct pool56 { long used; struct pool56 *next; char *at, *end; double load; long size, flags; };\n"
	"struct pool64 { struct pool64 *next; char *at, *end; void *owner; long used[4]; };\n"
	"struct plain48 { long used, size; double load[4]; };\n"
	"struct item { struct item *next; long id; };\n"
	"#define TYPES(X) X(pool24) X(pool40) X(pool56) X(pool64)\n"
	"#define DECLARE(T) struct T *T##_s[64], *T##_arrays[8];\n"
	"TYPES(DECLARE) struct plain48 *plain_s[8], *plain_arrays[8]; struct item *items;\n"
	"static void *block(size_t size, const char *type)\n"
	"{\n"
	"	void *p = calloc(1, size);\n"
	"	printf(\"b %p %zu %s\\n\", p, size, type);\n"
	"	return p;\n"
	"}\n"
	"static struct item *item(void)\n"
	"{\n"
	"	struct item *i = block(sizeof(*i), \"item\");\n"
	"	i->next = items;\n"
	"	return items = i;\n"
	"}\n"
	"/* What a pool has behind its head, from @at on. */\n"
	"static void fill(int what, char *at, size_t size)\n"
	"{\n"
	"	for (size_t i = 0; i + 16 <= size; i += 16) {\n"
	"		double number = 1.5 + i;\n"
	"		int small[4] = {i + 1, 2, 3, 4};\n"
	"		struct item object = {i % 1024 || i >= 8192 || what != 3 ? NULL : item(), i + 1};\n"
	"		switch (what) {\n"
	"		case 0: memcpy(at + i, \"a text that is l\", 16); break;\n"
	"		case 1: memcpy(at + i, &number, 8); memcpy(at + i + 8, &number, 8); break;\n"
	"		case 2: memcpy(at + i, small, 16); break;\n"
	"		case 3: memcpy(at + i, &object.id, 8); memcpy(at + i + 8, &object.next, 8); break;\n"
	"		case 4: if (i > size / 2) memcpy(at + i, \"in the last half\", 16); break;\n"
	"		case 5: break; /* nothing yet */\n"
	"		}\n"
	"	}\n"
	"}\n"
	"#define FILL(T) \\\n"
	"	for (int what = 0; what < 6; what++) \\\n"
	"		for (int i = 0; i < 4; i++) { \\\n"
	"			size_t each = sizeof(struct T); \\\n"
	"			size_t size = (size_t[]){3 * each, 4096 - 4096 % each, 100 * each + 8, 9000 * each}[i]; \\\n"
	"			struct T *p = T##_s[what * 4 + i] = block(size, #T); \\\n"
	"			p->at = (char *)(p + 1); \\\n"
	"			fill(what, p->at, size - each); \\\n"
	"			printf(\"f %p %zu next\\n\", (void *)p, (size_t)&((struct T *)0)->next); \\\n"
	"			printf(\"f %p %zu -\\n\", (void *)p, each + (size_t)&((struct T *)0)->next); \\\n"
	"		} \\\n"
	"	for (int i = 0; i < 5; i++) { \\\n"
	"		size_t n = (size_t[]){2, 3, 37, 100, 9000}[i]; \\\n"
	"		struct T *a = T##_arrays[i] = block(n * sizeof(*a), #T \"[]\"); \\\n"
	"		for (size_t k = 0; k < n; k++) { \\\n"
	"			a[k].at = k % 3 ? (char *)a : NULL; \\\n"
	"			a[k].next = k % 7 ? NULL : T##_s[0]; \\\n"
	"			((int *)&a[k])[sizeof(*a) / 4 - 2] = 7; \\\n"
	"		} \\\n"
	"		printf(\"f %p %zu [*].next\\n\", (void *)a, sizeof(*a) + (size_t)&((struct T *)0)->next); \\\n"
	"	}\n"
	"int main(void)\n"
	"{\n"
	"	TYPES(FILL)\n"
	"	for (int i = 0; i < 4; i++) { /* without pointers, those of others in it contradict */\n"
	"		size_t n = (size_t[]){3, 37, 85, 9000}[i];\n"
	"		struct plain48 *p = plain_s[i] = block(n * sizeof(*p), \"plain48\");\n"
	"		p[n / 2].used = (long)block(40, \"-\");\n"
	"		p = plain_arrays[i] = block(n * sizeof(*p), \"plain48[]\");\n"
	"		for (size_t k = 0; k < n; k++) { p[k].used = k; p[k].load[2] = 0.3 * k; }\n"
	"	}\n"
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

/* The first word of each of Qt's containers leads to its block. */
static const char qt_source[] =
	"#include <QByteArray>\n"
	"#include <QHash>\n"
	"#include <QList>\n"
	"#include <QMap>\n"
	"#include <QSet>\n"
	"#include <QString>\n"
	"#include <QVector>\n"
	"#include <cstdio>\n"
	"#include <malloc.h>\n"
	"struct Order { long id; char *text; }; struct Small { Order *order; };\n"
	"struct Session { QString name; QByteArray key; QVector<Order> orders; QVector<Session *> more; };\n"
	"QList<Order *> listed; QList<Order> boxed; QList<Small> small; QList<QString> words; QVector<Order *> crowd;\n"
	"QMap<int, Session *> by_user; QHash<int, Order *> by_id; QSet<QString> set; QString empty; QList<int> none;\n"
	"static void *block(const void *p, const char *type)\n"
	"{\n"
	"	printf(\"b %p %zu %s\\n\", p, malloc_usable_size((void *)p) - 8, type);\n"
	"	return (void *)p;\n"
	"}\n"
	"template <class T> static const char *data_of(const T &t) { return *(const char *const *)&t; }\n"
	"template <class T> static void data(const T &t, const char *type) { block(data_of(t), type); }\n"
	"static void *ready[100], **at = ready; /* from new memory: none is larger */\n"
	"static Order *order() { return (Order *)block(*at++, \"Order\"); }\n"
	"int main()\n"
	"{\n"
	"	for (void *&o : ready) o = new Order{1, nullptr};\n"
	"	for (int i = 0; i < 30; i++) listed.append(new Order());\n"
	"	for (int i = 0; i < 20; i++) delete listed.takeFirst(); /* what was there has other types now */\n"
	"	for (int i = 0; i < 20; i++) block(new long[2](), \"-\");\n"
	"	for (Order *o : listed) block(o, \"Order\");\n"
	"	data(listed, \"array of Order *\");\n"
	"	for (int i = 0; i < 5; i++) boxed.append(Order{1, (char *)block(malloc(200), \"char[]\")});\n"
	"	for (const Order &o : boxed) block(&o, \"Order\");\n"
	"	small.append(Small{order()}); block(&small[0], \"Small\");\n"
	"	data(boxed, \"array of Order *\"); data(small, \"array of Small *\");\n"
	"	for (int i = 0; i < 5; i++) { words.append(QString(40, QChar('w'))); data(words[i], \"array of short unsigned int\"); }\n"
	"	data(words, \"array of QString\");\n"
	"	for (int i = 0; i < 1000; i++) crowd.append(i % 100 ? nullptr : order());\n"
	"	data(crowd, \"array of Order *\");\n"
	"	for (int i = 0; i < 9; i++) {\n"
	"		Session *s = by_user[i] = new Session;\n"
	"		s->name = QString(30, QChar('n')); s->key = QByteArray(50, 'k'); s->orders.resize(3);\n"
	"		s->orders[2].text = (char *)block(malloc(100), \"char[]\");\n"
	"		block(s, \"Session\"); data(s->name, \"array of short unsigned int\");\n"
	"		data(s->key, \"array of char\"); data(s->orders, \"array of Order\");\n"
	"	}\n"
	"	data(by_user, \"QMapData<int, Session*>\");\n"
	"	for (auto i = by_user.begin(); i != by_user.end(); ++i) block((const char *)&i.key() - 24, \"QMapNode<int, Session*>\");\n"
	"	by_user[3]->more.append(by_user[4]); data(by_user[3]->more, \"array of Session *\");\n"
	"	for (int i = 0; i < 50; i++) by_id[i] = order();\n"
	"	data(by_id, \"QHashData\"); block(*(void **)(data_of(by_id) + 8), \"QHashNode<int, Order*> *[]\");\n"
	"	for (auto i = by_id.begin(); i != by_id.end(); ++i) block((const char *)&i.key() - 12, \"QHashNode<int, Order*>\");\n"
	"	for (int i = 0; i < 5; i++) set.insert(QString(i + 20, QChar('s')));\n"
	"	for (const QString &s : set) { data(s, \"array of short unsigned int\"); block((const char *)&s - 16, \"QHashNode<QString, QHashDummyValue>\"); }\n"
	"	data(set, \"QHashData\"); block(*(void **)(data_of(set) + 8), \"QHashNode<QString, QHashDummyValue> *[]\");\n"
	"	printf(\"f %p %d [*]\\n\", data_of(crowd), 24 + 8 * 700);\n"
	"	printf(\"f %p %d value\\n\", (const char *)&by_user.begin().key() - 24, 32);\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char protobuf_source[] =
	"#include <google/protobuf/map.h>\n"
	"#include <google/protobuf/repeated_field.h>\n"
	"#include <google/protobuf/wrappers.pb.h>\n"
	"#include <cstdio>\n"
	"#include <malloc.h>\n"
	"using namespace google::protobuf;\n"
	"struct Session { RepeatedPtrField<StringValue> messages; RepeatedPtrField<std::string> words; RepeatedField<int> numbers;\n"
	"	Map<int, std::string> texts; Map<std::string, StringValue> values; } session;\n"
	"StringValue single;\n"
	"static void block(const void *p, const char *type)\n"
	"{\n"
	"	printf(\"b %p %zu %s\\n\", p, malloc_usable_size((void *)p) - 8, type);\n"
	"}\n"
	"#define STRING \"std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >\"\n"
	"static void string(const std::string &s) { block(&s, STRING); block(s.data(), \"char[]\"); }\n"
	"int main()\n"
	"{\n"
	"	for (int i = 0; i < 20; i++) {\n"
	"		StringValue *m = session.messages.Add();\n"
	"		m->set_value(std::string(50, 'm'));\n"
	"		block(m, \"google::protobuf::StringValue\"); string(m->value());\n"
	"		session.words.Add(std::string(100, 'w')); string(session.words[i]);\n"
	"	}\n"
	"	block((const char *)session.messages.data() - 8, \"array of google::protobuf::StringValue *\");\n"
	"	block((const char *)session.words.data() - 8, \"array of \" STRING \" *\");\n"
	"	for (int i = 0; i < 40; i++) { session.numbers.Add(i); session.texts[i] = std::string(70, 't'); }\n"
	"	for (const auto &m : session.texts) { block(&m, \"google::protobuf::Map<int, \" STRING \" >::InnerMap::Node\"); block(m.second.data(), \"char[]\"); }\n"
	"	for (int i = 0; i < 9; i++) session.values[std::string(30, 'a' + i)].set_value(std::string(80, 'v'));\n"
	"	for (const auto &m : session.values) {\n"
	"		block(&m, \"google::protobuf::Map<\" STRING \", google::protobuf::StringValue>::InnerMap::Node\");\n"
	"		block(m.first.data(), \"char[]\"); string(m.second.value());\n"
	"	}\n"
	"	block((const char *)session.numbers.data() - 8, \"array of int\");\n"
	"	block(((void ***)&session.values)[4], \"google::protobuf::Map<\" STRING \", google::protobuf::StringValue>::InnerMap::Node *[]\");\n"
	"	block(((void ***)&session.texts)[4], \"google::protobuf::Map<int, \" STRING \" >::InnerMap::Node *[]\");\n"
	"	single.set_value(std::string(60, 's')); string(single.value());\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char boost_source[] =
	"#include <boost/container/flat_map.hpp>\n"
	"#include <boost/container/flat_set.hpp>\n"
	"#include <boost/container/small_vector.hpp>\n"
	"#include <boost/container/vector.hpp>\n"
	"#include <boost/intrusive/list.hpp>\n"
	"#include <boost/intrusive/set.hpp>\n"
	"#include <boost/optional.hpp>\n"
	"#include <boost/shared_ptr.hpp>\n"
	"#include <boost/unordered_map.hpp>\n"
	"#include <boost/unordered_set.hpp>\n"
	"#include <cstdio>\n"
	"#include <malloc.h>\n"
	"struct Order { long id; char *text; };\n"
	"struct Item : boost::intrusive::list_base_hook<> { Order *order; };\n"
	"struct Leaf : boost::intrusive::set_base_hook<> { int number; Order *order; };\n"
	"static bool operator<(const Leaf &a, const Leaf &b) { return a.number < b.number; }\n"
	"struct Queue { boost::intrusive::list<Item> items; long more[20]; } *queue; boost::intrusive::list<Item> items;\n"
	"boost::unordered_map<int, Order *> by_id; boost::unordered_multimap<int, Order> inside; boost::unordered_set<Order *> set;\n"
	"boost::container::flat_map<int, Order *> flat; boost::container::flat_set<Order *> flat_set;\n"
	"boost::container::vector<Order> vector; boost::container::small_vector<Order *, 4> few, many;\n"
	"boost::intrusive::set<Leaf> leaves; boost::shared_ptr<Order> shared; boost::optional<Order *> maybe;\n"
	"template <class T> static T *block(T *p, const char *type)\n"
	"{\n"
	"	printf(\"b %p %zu %s\\n\", (void *)p, malloc_usable_size((void *)p) - 8, type);\n"
	"	return p;\n"
	"}\n"
	"static Order *order() { return block(new Order{1, block(new char[40](), \"char[]\")}, \"Order\"); }\n"
	"int main()\n"
	"{\n"
	"	queue = block(new Queue(), \"Queue\");\n"
	"	for (int i = 0; i < 30; i++) {\n"
	"		by_id[i] = order(); flat[i] = order(); flat_set.insert(order()); set.insert(order()); many.push_back(order());\n"
	"		inside.emplace(i / 2, Order{i, block(new char[40](), \"char[]\")});\n"
	"		vector.push_back(Order{i, block(new char[40](), \"char[]\")});\n"
	"		Item *item = block(new Item, \"Item\"); item->order = order(); (i % 2 ? items : queue->items).push_back(*item);\n"
	"		Leaf *leaf = block(new Leaf, \"Leaf\"); leaf->number = i * 7 % 30; leaf->order = order(); leaves.insert(*leaf);\n"
	"	}\n"
	"	few.push_back(order()); shared.reset(order()); maybe = order();\n"
	"	for (auto &e : by_id) block((char *)&e - 16, \"node of std::pair<int const, Order*>\");\n"
	"	for (auto &e : inside) block((char *)&e - 16, \"node of std::pair<int const, Order>\");\n"
	"	for (auto &e : set) block((char *)&e - 16, \"node of Order *\");\n"
	"	block(((void **)&inside)[5], \"node of std::pair<int const, Order> *[]\"); block(((void **)&set)[5], \"node of Order * *[]\");\n"
	"	block(((void **)&by_id)[5], \"node of std::pair<int const, Order*> *[]\");\n"
	"	block(&*flat.begin(), \"boost::container::dtl::pair<int, Order*>[]\"); block(&*flat_set.begin(), \"Order *[]\");\n"
	"	block(vector.data(), \"Order[]\"); block(many.data(), \"Order *[]\");\n"
	"	puts(\"ready\"); fflush(stdout);\n"
	"	while (getchar() != EOF) ;\n"
	"	return 0;\n"
	"}\n";

static const char absl_source[] =
	"#include <absl/container/flat_hash_map.h>\n"
	"#include <absl/container/flat_hash_set.h>\n"
	"#include <absl/container/inlined_vector.h>\n"
	"#include <absl/container/node_hash_map.h>\n"
	"#include <cstdio>\n"
	"#include <malloc.h>\n"
	"struct Order { long id; char *text; };\n"
	"absl::flat_hash_map<int, Order *> by_id; absl::flat_hash_map<int, Order> inside; absl::flat_hash_set<Order *> set;\n"
	"absl::node_hash_map<int, Order *> nodes; absl::InlinedVector<Order *, 4> few, many; absl::InlinedVector<Order, 2> orders;\n"
	"template <class T> static T *block(T *p, const char *type)\n"
	"{\n"
	"	printf(\"b %p %zu %s\\n\", (void *)p, malloc_usable_size((void *)p) - 8, type);\n"
	"	return p;\n"
	"}\n"
	"static Order *order() { return block(new Order{1, block(new char[40](), \"char[]\")}, \"Order\"); }\n"
	"int main()\n"
	"{\n"
	"	for (int i = 0; i < 30; i++) {\n"
	"		by_id[i] = order(); nodes[i] = order(); set.insert(order()); many.push_back(order());\n"
	"		inside[i] = Order{i, block(new char[40](), \"char[]\")};\n"
	"		orders.push_back(Order{i, block(new char[40](), \"char[]\")});\n"
	"	}\n"
	"	few.push_back(order()); few.push_back(order());\n"
	"	void **tables[] = {(void **)&by_id, (void **)&inside, (void **)&set, (void **)&nodes};\n"
	"	for (void **table : tables) block(*table, \"-\");\n"
	"	for (auto &e : nodes) block(&e, \"std::pair<int const, Order*>\");\n"
	"	block(many.data(), \"Order *[]\"); block(orders.data(), \"Order[]\");\n"
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

	assert_string_equal(field ?: "-", rest + 1);
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

static void test_pools(void **state)
{
	check_program("gcc -g -O1 -o p typed_pool.c");
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

#define QT "pkg-config --cflags --libs Qt5Core"

static void test_qt(void **state)
{
	if (!layout_run(QT " >/dev/null 2>&1") || !layout_run(HAS("g++")))
		skip();
	check_program("g++ -g -fPIC -o p typed_qt.cpp $(" QT ")");
}

#define PROTOBUF "pkg-config --cflags --libs protobuf"

/* Of a class whose table is in a library gcc has no members by default. */
static void test_protobuf(void **state)
{
	if (!layout_run(PROTOBUF " >/dev/null 2>&1") || !layout_run(HAS("g++")))
		skip();
	check_program("g++ -g -femit-class-debug-always -o p typed_pb.cpp $(" PROTOBUF ")");
}

#define HAS_HEADER(header) \
	"printf '#if !__has_include(<" header ">)\n#error\n#endif\n' | g++ -E -x c++ - >/dev/null 2>&1"

static void test_boost(void **state)
{
	if (!layout_run(HAS_HEADER("boost/unordered_map.hpp")) ||
	    !layout_run(HAS_HEADER("boost/container/flat_map.hpp")))
		skip();
	check_program("g++ -g -o p typed_boost.cpp");
}

static void test_absl(void **state)
{
	if (!layout_run(HAS_HEADER("absl/container/inlined_vector.h")))
		skip();
	check_program("g++ -g -std=c++17 -o p typed_absl.cpp $(pkg-config --libs "
		      "absl_raw_hash_set absl_hash)");
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
		"%s:2: B: it has no kind (array, string, nodes, swiss, optional, variant, reference, "
		"wrapper or pointer)", path);

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
	layout_write("typed_pool.c", pool_source);
	layout_write("typed.cpp", cxx_source);
	layout_write("typed_glib.c", glib_source);
	layout_write("typed_qt.cpp", qt_source);
	layout_write("typed_pb.cpp", protobuf_source);
	layout_write("typed_boost.cpp", boost_source);
	layout_write("typed_absl.cpp", absl_source);
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
		cmocka_unit_test(test_pools),
		cmocka_unit_test(test_cxx),
		cmocka_unit_test(test_libcxx),
		cmocka_unit_test(test_glib),
		cmocka_unit_test(test_qt),
		cmocka_unit_test(test_protobuf),
		cmocka_unit_test(test_boost),
		cmocka_unit_test(test_absl),
		cmocka_unit_test(test_rust),
		cmocka_unit_test(test_descriptions),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
