/*
 * Like owned.c, with containers of C++: each line on standard input names a variable, which is
 * emptied; the answer is "BLOCKS BYTES", as many as were freed, by malloc_usable_size. Memory is
 * cleared when it is allocated: what has not been written yet, as the rest of a vector or deque,
 * would have pointers of earlier blocks.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <list>
#include <malloc.h>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#include "commands.h"
#include "noinline.h"

static size_t freed_blocks, freed_bytes;

NOINLINE void *operator new(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		throw std::bad_alloc();
	return p;
}

NOINLINE void operator delete(void *p) noexcept
{
	freed_blocks += p != nullptr;
	freed_bytes += p ? malloc_usable_size(p) : 0;
	free(p);
}

void operator delete(void *p, size_t) noexcept
{
	operator delete(p);
}

struct Order {
	std::string name;
	std::vector<int> amounts;
};

struct Session {
	virtual ~Session() = default;
	std::vector<std::unique_ptr<Order>> orders;
	std::shared_ptr<Order> best;
};

std::vector<std::string> names;
std::map<int, Session> by_number;
std::unordered_map<std::string, std::vector<Order>> by_user;
std::list<std::deque<int>> queues;
std::shared_ptr<Session> first, second; // both hold the same best order
std::string text;
static std::unique_ptr<Session[]> sessions;

static std::string long_name(size_t i)
{
	return std::string(10 + i * 7 % 60, 'n') + std::to_string(i);
}

static void fill()
{
	for (size_t i = 0; i < 300; i++)
		names.push_back(long_name(i));
	for (int i = 0; i < 40; i++)
		for (size_t k = 0; k < 5; k++)
			by_number[i].orders.push_back(std::make_unique<Order>(
				Order{long_name(k), std::vector<int>(k * 3)}));
	for (size_t i = 0; i < 100; i++)
		by_user[long_name(i)].resize(i % 4 + 1, Order{long_name(i), std::vector<int>(i)});
	for (int i = 0; i < 20; i++)
		queues.emplace_back(i * 100, i);
	first = std::make_shared<Session>();
	second = std::make_shared<Session>();
	first->best = second->best = std::make_shared<Order>(Order{long_name(8), {1, 2, 3}});
	first->orders.push_back(std::make_unique<Order>(Order{long_name(9), {1}}));
	text = std::string(100000, 't');
	sessions = std::make_unique<Session[]>(10);
	sessions[7].orders.push_back(std::make_unique<Order>(Order{long_name(9), {1, 2}}));
}

static const struct {
	const char *name;
	void (*drop)();
} variables[] = {
	{"names", [] { std::vector<std::string>().swap(names); }},
	{"by_number", [] { by_number.clear(); }},
	{"by_user", [] { std::unordered_map<std::string, std::vector<Order>>().swap(by_user); }},
	{"queues", [] { queues.clear(); }},
	{"first", [] { first.reset(); }},
	{"second", [] { second.reset(); }},
	{"text", [] { std::string().swap(text); }},
	{"sessions", [] { sessions.reset(); }},
};

static void obey(const char *name)
{
	char answer[64];

	freed_blocks = freed_bytes = 0;
	for (const auto &v : variables)
		if (strcmp(v.name, name) == 0)
			v.drop();
	snprintf(answer, sizeof(answer), "%zu %zu\n", freed_blocks, freed_bytes);
	say(answer);
}

int main()
{
	fill();
	obey_lines(obey);
	return 0;
}
