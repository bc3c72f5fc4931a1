/*
 * leaks_cxx: blocks that C++ and unusual places point to, for a leak check beside memcheck's: each
 * function makes blocks at one place, and the test compares what is said of each. Leaves by _exit.
 */
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_map>
#include <pthread.h>
#include <sys/syscall.h>
#include <vector>

#include "await_call.h"
#include "noinline.h"

struct Item { std::string s; virtual ~Item() {} int k = 3; };
struct Plain { long a[3]; ~Plain() { a[0]++; } };
struct Left { virtual ~Left() {} long a = 1; };
struct Right { virtual ~Right() {} virtual int f() { return 1; } long b = 2; };
struct Both : Left, Right { long c = 3; };
struct Node { int v; Node *next; };

static constexpr uintptr_t HIDE = UINT64_C(0x5a5a5a5a5a5a5a5a);

/* Pointers are passed encoded, so that no copy remains. */
static inline uintptr_t hide(const void *p) { return reinterpret_cast<uintptr_t>(p) ^ HIDE; }
static inline char *show(uintptr_t h) { return reinterpret_cast<char *>(h ^ HIDE); }

void *volatile kept[64];
static int used;

static NOINLINE void keep(uintptr_t h) { kept[used++] = show(h); }

#define MAKER(name, expr) static NOINLINE uintptr_t name() { uintptr_t h = hide(expr); __asm__ volatile("" : "+r"(h)); return h; }

static uint64_t *words(size_t size, uint64_t first, uint64_t second)
{
	uint64_t *p = static_cast<uint64_t *>(calloc(1, size));
	p[0] = first;
	p[1] = second;
	return p;
}

MAKER(array_of_items, new Item[7])
MAKER(array_with_cookie, new Plain[9])
MAKER(array_of_ints, new int[9])
MAKER(second_base, static_cast<Right *>(new Both))
MAKER(first_base, static_cast<Left *>(new Both))
MAKER(string_object, new std::string("a text that is longer than what fits into the object"))
MAKER(middle_of_text, strdup("a text whose middle alone is pointed to") + 8)
MAKER(middle_of_vector, (new std::vector<int>(100))->data() + 5)
MAKER(behind_length, words(208, 200, 0) + 1)
MAKER(behind_wrong_length, words(208, 199, 0) + 1)
MAKER(behind_string_head, words(65, 20, 40) + 3)
MAKER(behind_wrong_head, words(65, 50, 40) + 3)
MAKER(past_end, static_cast<char *>(calloc(1, 96)) + 96)
MAKER(last_byte, static_cast<char *>(calloc(1, 96)) + 95)
MAKER(empty_block, malloc(0))
MAKER(aligned_block, aligned_alloc(4096, 8192))
MAKER(grown_block, realloc(calloc(1, 10), 100000))
MAKER(huge_block, calloc(1, 3000000))
MAKER(lost_huge_block, calloc(1, 3000001))
/*
 * not small: if glibc splits such a block for small ones it keeps the rest's address, which would
 * be inside
 */
MAKER(lost_grown_block, realloc(calloc(1, 2000), 3000))
MAKER(in_mapping, calloc(1, 500))
MAKER(at_mapping_end, calloc(1, 501))
MAKER(in_shared_mapping, calloc(1, 502))
MAKER(in_read_only_mapping, calloc(1, 503))
MAKER(in_closed_mapping, calloc(1, 504))
MAKER(not_aligned, calloc(1, 505))
MAKER(at_block_tail, calloc(1, 506))
MAKER(block_with_tail, calloc(1, 28))
MAKER(blocked_thread, calloc(1, 507))

static NOINLINE void place_mappings()
{
	auto map = [](int flags) {
		return static_cast<char *>(mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, -1, 0));
	};
	auto put = [](char *at, uintptr_t h) { *reinterpret_cast<char *volatile *>(at) = show(h); };

	char *m = map(MAP_PRIVATE);
	put(m + 4096, in_mapping());
	put(m + 8192 - 8, at_mapping_end());
	put(map(MAP_SHARED), in_shared_mapping());
	m = map(MAP_PRIVATE);
	put(m, in_read_only_mapping());
	mprotect(m, 8192, PROT_READ);
	m = map(MAP_PRIVATE);
	put(m, in_closed_mapping());
	mprotect(m, 8192, PROT_NONE);
	put(map(MAP_PRIVATE) + 3, not_aligned());
	uintptr_t holder = block_with_tail();
	put(show(holder) + 20, at_block_tail());
	keep(holder);
}

static NOINLINE void library_types()
{
	static std::shared_ptr<Item> shared;
	static std::weak_ptr<Item> weak;
	static std::map<int, std::string> map;
	static std::list<std::string> list;
	static std::deque<std::string> deque;
	static std::unordered_map<int, std::string> hash;
	static std::function<long()> function;

	shared = std::make_shared<Item>();
	auto gone = std::make_shared<Item>();
	weak = gone;
	for (int i = 0; i < 20; i++) {
		map[i] = hash[i] = std::string(40, 'x');
		list.push_back(map[i]);
		deque.push_back(map[i]);
	}
	long a = used, b = used + 1, c = used + 2;
	function = [=] { return a + b + c; };
}

static NOINLINE void lost_map()
{
	auto *volatile m = new std::map<int, std::string>;
	for (int i = 0; i < 20; i++)
		(*m)[i] = std::string(40, 'x');
	m = nullptr;
}

static NOINLINE void lost_list()
{
	auto *volatile l = new std::list<std::string>;
	for (int i = 0; i < 20; i++)
		l->push_back(std::string(40, 'x'));
	l = nullptr;
}

static NOINLINE void lost_self_cycle()
{
	Node *volatile n = new Node;
	n->next = n;
	n = nullptr;
}

static pid_t waiting;

/* Sleeps in a read that never ends, with a pointer on its stack alone. */
static void *wait_for_ever(void *ends)
{
	waiting = gettid();
	char *volatile mine = show(blocked_thread());
	char c;
	int *fd = static_cast<int *>(ends);
	pthread_barrier_t *placed;
	memcpy(&placed, fd + 2, sizeof(placed));
	pthread_barrier_wait(placed);
	while (read(fd[0], &c, 1) >= 0)
		;
	return mine;
}

static NOINLINE void wipe_stack()
{
	volatile char scratch[32768];
	memset(const_cast<char *>(scratch), 0, sizeof(scratch));
}

static NOINLINE void place()
{
	uintptr_t (*const makers[])() = {
		array_of_items, array_with_cookie, array_of_ints, second_base, first_base, string_object, middle_of_text,
		middle_of_vector, behind_length, behind_wrong_length, behind_string_head, behind_wrong_head, past_end,
		last_byte, empty_block, aligned_block, grown_block, huge_block,
	};
	for (auto make : makers)
		keep(make());
	lost_huge_block();
	lost_grown_block();
	place_mappings();
	library_types();
	lost_map();
	lost_list();
	lost_self_cycle();
}

int main()
{
	static pthread_barrier_t placed;
	static struct { int fd[2]; pthread_barrier_t *barrier; } ends;
	pthread_t thread;

	if (pipe(ends.fd) != 0)
		_exit(90);
	ends.barrier = &placed;
	pthread_barrier_init(&placed, nullptr, 2);
	pthread_create(&thread, nullptr, wait_for_ever, &ends);
	pthread_barrier_wait(&placed);
	place();
	wipe_stack();
	await_call(waiting, SYS_read);
	_exit(0);
}
