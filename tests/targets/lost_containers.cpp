/*
 * Lost containers and parents, whose nodes and children point back to them. Prints what a leak check
 * must say, one line for each record: the function that allocated its leader, its direct bytes, and
 * its indirect blocks.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

#include "noinline.h"

#define COUNT 40

using names = std::map<int, std::string>;
using numbers = std::list<std::vector<int>>;

static NOINLINE names *new_map()
{
	names *m = new names;
	NO_TAIL_CALL();
	return m;
}

static NOINLINE numbers *new_list()
{
	numbers *l = new numbers;
	NO_TAIL_CALL();
	return l;
}

static NOINLINE numbers *new_other_list()
{
	numbers *l = new numbers;
	NO_TAIL_CALL();
	return l;
}

static NOINLINE void fill(numbers *l)
{
	for (int i = 0; i < COUNT; i++)
		l->push_back(std::vector<int>(11));
}

static NOINLINE void lose_map()
{
	names *m = new_map();
	for (int i = 0; i < COUNT; i++)
		(*m)[i] = std::string(57, 'm');
}

/* The path of the nodes is taken before that of the second list, which is older than its own nodes. */
static NOINLINE void lose_lists()
{
	for (int i = 0; i < 2; i++) {
		numbers *l = i ? new_other_list() : new_list();
		usleep(1000); /* longer than the error of times */
		fill(l);
	}
}

struct parent;

struct child {
	parent *up;
	char *name;
	int *values;
};

struct parent {
	child *first;
	char rest[99];
};

static NOINLINE parent *new_parent()
{
	parent *p = static_cast<parent *>(malloc(sizeof(parent)));
	NO_TAIL_CALL();
	return p;
}

static NOINLINE void lose_parent()
{
	parent *p = new_parent();
	p->first = static_cast<child *>(malloc(sizeof(child)));
	p->first->up = p;
	p->first->name = strdup("the name of the child");
	p->first->values = static_cast<int *>(malloc(12));
}

static NOINLINE void wipe_stack()
{
	volatile char scratch[32768];
	memset(const_cast<char *>(scratch), 0, sizeof(scratch));
}

int main()
{
	lose_map();
	printf("new_map %zu %d\n", sizeof(names), 2 * COUNT);
	lose_lists();
	printf("new_list %zu %d\n", sizeof(numbers), 2 * COUNT);
	printf("new_other_list %zu %d\n", sizeof(numbers), 2 * COUNT);
	lose_parent();
	printf("new_parent %zu 3\n", sizeof(parent));
	wipe_stack();
	return 0;
}
