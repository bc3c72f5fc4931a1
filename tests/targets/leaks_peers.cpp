/*
 * leaks_peers CLASS [LIBRARY] [wait]: leaks of one class, to be examined by ptmem, memcheck and
 * LeakSanitizer alike. A function called make_* makes the blocks of one kind; the test
 * compares what each tool says of them. Neighbours in the heap are freed before the end, so that
 * glibc's lists of free chunks lead to every place in it.
 *
 * wait: a byte from standard input is awaited before and after, and answered by a line.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "await_call.h"
#include "noinline.h"

extern "C" void __lsan_do_leak_check() __attribute__((weak));

/* Pointers that must not leave copies are passed encoded. */
static constexpr uintptr_t HIDE = UINT64_C(0x5a5a5a5a5a5a5a5a);
typedef uintptr_t hidden;

static inline hidden hide(const void *p)
{
	return reinterpret_cast<uintptr_t>(p) ^ HIDE;
}

template <typename T> static inline T *show(hidden h)
{
	return reinterpret_cast<T *>(h ^ HIDE);
}

#define MAKER(name, expr)                                                                    \
	static NOINLINE hidden name()                                                        \
	{                                                                                    \
		hidden h = hide(expr);                                                       \
		__asm__ volatile("" : "+r"(h));                                              \
		return h;                                                                    \
	}

static NOINLINE void wipe_stack()
{
	volatile char scratch[32768];
	memset(const_cast<char *>(scratch), 0, sizeof(scratch));
}

static NOINLINE void forget(void *p)
{
	__asm__ volatile("" : : "r"(p) : "memory");
}

static void *volatile kept[64];

/* -- neighbours: freed memory of all sizes, in all of malloc's lists -- */

static hidden neighbour[8192];
static int neighbours;

static NOINLINE void add_neighbour()
{
	static const size_t sizes[] = {24, 40, 120, 400, 1000, 1100, 1500, 3000, 70000};
	size_t size = sizes[neighbours % (sizeof(sizes) / sizeof(*sizes))];

	neighbour[neighbours++] = hide(memset(malloc(size), 1, size));
}

static NOINLINE void free_neighbours()
{
	for (int i = 0; i < neighbours; i++)
		free(show<void>(neighbour[i]));
	neighbours = 0;
}

/* -- sizes -- */

static NOINLINE void make_malloc(size_t size)
{
	forget(memset(malloc(size), 0, size));
}

static NOINLINE void make_calloc(size_t size)
{
	forget(calloc(1, size));
}

static NOINLINE void make_aligned(size_t size)
{
	void *p = nullptr;

	if (posix_memalign(&p, 64, size) != 0)
		abort();
	forget(memset(p, 0, size));
	p = nullptr;
}

static NOINLINE void make_grown(size_t size)
{
	forget(memset(realloc(calloc(1, size / 2 + 1), size), 0, size));
}

static NOINLINE void sizes()
{
	for (size_t size = 1; size <= 4096; size++) {
		make_malloc(size);
		if (size % 16 == 0)
			make_calloc(size - 8);
		if (size % 16 == 3)
			make_aligned(size);
		if (size % 16 == 5)
			make_grown(size);
		if (size % 2)
			add_neighbour();
	}
}

/* -- lists -- */

struct node {
	char data[8];
	node *before, *next; /* next is in the last 8 of 24 bytes: in the next chunk */
};

MAKER(make_lost_head, calloc(1, sizeof(node)))
MAKER(make_lost_rest, calloc(1, sizeof(node)))
MAKER(make_ring, calloc(1, sizeof(node)))
MAKER(make_double_head, calloc(1, sizeof(node)))
MAKER(make_double_rest, calloc(1, sizeof(node)))
MAKER(make_kept_list, calloc(1, sizeof(node)))
MAKER(make_headless, calloc(1, sizeof(node)))
MAKER(make_headless_rest, calloc(1, sizeof(node)))
MAKER(make_hooked, calloc(1, sizeof(node)))
MAKER(make_tail_of_global, calloc(1, sizeof(node)))

typedef hidden maker();

/* @first, then nodes of @rest; returns the first. */
static NOINLINE node *list(maker *first, maker *rest, int count, bool both)
{
	node *head = show<node>(first()), *last = head;

	for (int i = 0; i < count; i++) {
		node *n = show<node>(rest());
		add_neighbour();
		last->next = n;
		n->before = both ? last : nullptr;
		last = n;
	}
	return head;
}

static NOINLINE void lists()
{
	list(make_lost_head, make_lost_rest, 50, false);
	list(make_double_head, make_double_rest, 50, true);
	kept[0] = list(make_kept_list, make_kept_list, 50, true);
	node *ring = list(make_ring, make_ring, 20, false), *last = ring;
	while (last->next)
		last = last->next;
	last->next = ring;
	/* only the head is freed, and still holds its pointers, except the first */
	free(list([] { return hide(calloc(1, sizeof(node))); }, make_headless, 1, false));
	node *head = show<node>(hide(calloc(1, 2000)));
	head->next = list(make_headless, make_headless_rest, 20, false);
	free(head);
	/* only their last words are pointed to, as intrusive lists do */
	for (int i = 0; i < 5; i++)
		kept[1 + i] = &show<node>(make_hooked())->next;
	kept[6] = reinterpret_cast<char *>(show<node>(make_tail_of_global())) + sizeof(node);
}

/* -- trees -- */

struct tree {
	tree *left, *right, *up;
	char data[20];
};

MAKER(make_root, calloc(1, sizeof(tree)))
MAKER(make_branch, calloc(1, sizeof(tree)))
MAKER(make_looped_tree, calloc(1, sizeof(tree)))
MAKER(make_kept_branch, calloc(1, sizeof(tree)))
MAKER(make_orphan, calloc(1, sizeof(tree)))
MAKER(make_orphan_branch, calloc(1, sizeof(tree)))
MAKER(make_table, calloc(100, sizeof(void *)))
MAKER(make_entry, calloc(1, 37))

static NOINLINE tree *grow(maker *root, maker *branch, int depth, bool up)
{
	tree *t = show<tree>(root());

	add_neighbour();
	if (depth > 0) {
		t->left = grow(branch, branch, depth - 1, up);
		t->right = grow(branch, branch, depth - 1, up);
		if (up)
			t->left->up = t->right->up = t;
	}
	return t;
}

static NOINLINE void trees()
{
	tree *t = grow(make_root, make_branch, 5, false);
	t->left->left = grow(make_kept_branch, make_kept_branch, 2, false);
	kept[10] = t->left->left;
	grow(make_looped_tree, make_looped_tree, 4, true);
	/* a root freed before its children, in a cache and among large free chunks */
	for (int i = 0; i < 12; i++) {
		tree *root = static_cast<tree *>(malloc(i % 2 ? sizeof(tree) : 1500));
		memset(root, 0, sizeof(*root));
		root->up = grow(make_orphan, make_orphan_branch, 1, false);
		add_neighbour();
		free(root);
	}
	void **table = show<void *>(make_table());
	for (int i = 0; i < 100; i++)
		table[i] = show<void>(make_entry());
	kept[11] = show<void>(make_table());
}

/* -- threads -- */

MAKER(make_tls_of_living, calloc(1, 101))
MAKER(make_stack_of_living, calloc(1, 102))
MAKER(make_key_of_living, calloc(1, 103))
MAKER(make_tls_of_dead, calloc(1, 104))
MAKER(make_stack_of_dead, calloc(1, 105))
MAKER(make_result_of_dead, calloc(1, 106))
MAKER(make_kept_of_thread, calloc(1, 107))

static NOINLINE void make_lost_of_thread(size_t size)
{
	forget(memset(malloc(size), 0, size));
}

static thread_local void *volatile local;
static pthread_key_t key;
static pthread_barrier_t placed;

static NOINLINE void leak_in_thread()
{
	hidden freed[300];

	for (size_t i = 0; i < 300; i++) {
		make_lost_of_thread(1 + i);
		freed[i] = hide(calloc(1, 24 + i * 8));
	}
	for (size_t i = 0; i < 300; i++)
		free(show<void>(freed[i]));
	wipe_stack();
}

static void *live(void *own_id)
{
	*static_cast<pid_t *>(own_id) = gettid();
	leak_in_thread();
	void *volatile mine = show<void>(make_stack_of_living());
	local = show<void>(make_tls_of_living());
	pthread_setspecific(key, show<void>(make_key_of_living()));
	wipe_stack();
	pthread_barrier_wait(&placed);
	pause();
	return mine;
}

static void *die(void *)
{
	leak_in_thread();
	void *volatile mine = show<void>(make_stack_of_dead());
	local = show<void>(make_tls_of_dead());
	kept[20] = show<void>(make_kept_of_thread());
	wipe_stack();
	return mine ? show<void>(make_result_of_dead()) : nullptr;
}

static NOINLINE void threads()
{
	static pid_t id[3];
	pthread_t thread;
	void *result;

	pthread_key_create(&key, nullptr);
	pthread_barrier_init(&placed, nullptr, 4);
	for (pid_t &own : id)
		pthread_create(&thread, nullptr, live, &own);
	pthread_barrier_wait(&placed);
	for (int i = 0; i < 5; i++) {
		pthread_create(&thread, nullptr, die, nullptr);
		pthread_join(thread, &result);
	}
	result = nullptr;
	for (pid_t waiting : id)
		await_call(waiting, PAUSE_CALL);
}

/* -- libraries -- */

MAKER(make_held, calloc(1, 201))
MAKER(make_unloaded, calloc(1, 202))
MAKER(make_unloaded_child, calloc(1, 203))

static NOINLINE void libraries(const char *path)
{
	std::string copy = std::string(path) + ".copy." + std::to_string(getpid());

	std::string command = "cp " + std::string(path) + " " + copy;
	if (system(command.c_str()) != 0)
		exit(90);
	for (int i = 0; i < 2; i++) {
		void *library = dlopen(i ? copy.c_str() : path, RTLD_NOW);
		void **held = library ? static_cast<void **>(dlsym(library, "held")) : nullptr;
		if (!held)
			exit(91);
		*held = show<void>(i ? make_unloaded() : make_held());
		if (i)
			*static_cast<void **>(*held) = show<void>(make_unloaded_child());
		if (i)
			dlclose(library);
	}
	unlink(copy.c_str());
}

/* -- C++ -- */

struct owner {
	std::shared_ptr<owner> other;
	std::string text;
};

struct left { virtual ~left() {} long a = 1; };
struct right { virtual ~right() {} long b = 2; };
struct both : left, right { long c = 3; };
struct counted { long n = 1; ~counted() { n = 0; } };

static NOINLINE void make_cycle()
{
	auto a = std::make_shared<owner>(), b = std::make_shared<owner>();
	a->other = b;
	b->other = a;
	a->text = std::string(50, 'x');
}

static NOINLINE void make_self()
{
	auto a = std::make_shared<owner>();
	a->other = a;
}

static NOINLINE void make_vectors()
{
	auto *volatile v = new std::vector<std::vector<int>>;
	for (int i = 0; i < 10; i++)
		v->push_back(std::vector<int>(i + 1));
	v = nullptr;
}

static NOINLINE void make_map()
{
	auto *volatile m = new std::map<int, std::string>;
	for (int i = 0; i < 20; i++)
		(*m)[i] = std::string(30 + i, 'x');
	m = nullptr;
}

MAKER(make_kept_vectors, new std::vector<std::string>(10, std::string(40, 'x')))
MAKER(make_second_base, static_cast<right *>(new both))
MAKER(make_array, new counted[9])
MAKER(make_lost_array, new counted[9])
MAKER(make_lost_both, static_cast<right *>(new both))

static NOINLINE void cxx()
{
	for (int i = 0; i < 3; i++) {
		make_cycle();
		add_neighbour();
		make_self();
		add_neighbour();
		make_vectors();
		make_map();
	}
	kept[30] = show<void>(make_kept_vectors());
	kept[31] = show<void>(make_second_base());
	kept[32] = show<void>(make_array());
	make_lost_array();
	make_lost_both();
}

/* -- where the heap is -- */

static NOINLINE void addresses()
{
	for (size_t size = 1; size <= 16777216; size *= 16)
		fprintf(stderr, "address %p\n", malloc(size));
}

static void step(bool waits, const char *answer)
{
	char c;

	if (waits && (read(STDIN_FILENO, &c, 1) != 1 || write(STDOUT_FILENO, answer, strlen(answer)) < 0))
		exit(92);
}

int main(int argc, char **argv)
{
	bool waits = argc > 3 && strcmp(argv[3], "wait") == 0;

	if (argc < 3)
		return 93;
	step(waits, "begun\n");
	for (int i = 0; i < 100; i++)
		add_neighbour();
	switch (*argv[1]) {
	case 's': sizes(); break;
	case 'l': lists(); break;
	case 't': trees(); break;
	case 'p': threads(); break;
	case 'd': libraries(argv[2]); break;
	case 'c': cxx(); break;
	case 'a': addresses(); break;
	}
	free_neighbours();
	wipe_stack();
	step(waits, "placed\n");
	if (__lsan_do_leak_check)
		__lsan_do_leak_check();
	step(waits, "done\n");
	_exit(0);
}
