/*
 * Lost trees and cycles, and blocks that variables hold. Prints what a leak check must say, one line
 * for each record: the function that allocated its leader, and direct and indirect blocks.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "noinline.h"

struct child;

struct node {
	std::string name;
	std::shared_ptr<child> first;
	std::vector<std::shared_ptr<child>> all;
};

struct child {
	std::shared_ptr<node> parent;
	std::string tag;
};

static int followers; /* blocks that a function's last object refers to */

/* Scatters the addresses of what follows: any block of a cycle can be the lowest. */
static NOINLINE void scatter(int i)
{
	void *volatile hole[5];
	for (int k = 0; k < 5; k++)
		hole[k] = malloc(16 + (size_t)(i * 37 + k * 29) % 120);
	for (int k = 0; k < 5; k++)
		free(hole[k]);
}

static NOINLINE void lose_cycle(int i)
{
	auto n = std::make_shared<node>();
	n->name = std::string(40 + (size_t)i % 3, 'x');
	auto c = std::make_shared<child>();
	c->parent = n;
	n->first = c;
	followers += 2;
	if (i % 2) {
		c->tag = std::string(50, 'y');
		followers++;
	}
	n->all.reserve(3);
	followers++;
	for (int k = 0; k < i % 4 && k < 3; k++) {
		auto d = std::make_shared<child>();
		d->parent = n;
		n->all.push_back(d);
		followers++;
	}
}

/* A string's memory, allocated first, has an old pointer to what holds the string. */
struct named {
	char *text;
};

static NOINLINE char *make_text()
{
	char spaces[100];
	memset(spaces, ' ', sizeof(spaces) - 1);
	spaces[sizeof(spaces) - 1] = 0;
	return strdup(spaces);
}

static NOINLINE void lose_named()
{
	char *text = make_text();
	named *n = new named{text};
	memcpy(text + 64, &n, sizeof(n));
}

struct tree {
	tree *left, *right;
};

static NOINLINE tree *lose_tree(int depth)
{
	if (depth == 0)
		return nullptr;
	tree *t = new tree;
	t->left = lose_tree(depth - 1);
	t->right = lose_tree(depth - 1);
	return t;
}

/* Each call loses a block, at another depth. */
static NOINLINE void lose_at_depth(int depth)
{
	void *volatile lost = malloc(1000);
	lost = nullptr;
	(void)lost;
	if (depth > 1)
		lose_at_depth(depth - 1);
	__asm__ volatile("");
}

struct link {
	link *next;
	char *data;
};

link *kept_list;

static NOINLINE link *keep_link(link *next)
{
	link *l = new link{next, nullptr};
	return l;
}

static NOINLINE void keep_data(link *l)
{
	l->data = static_cast<char *>(malloc(500));
}

static NOINLINE void wipe_stack()
{
	volatile char scratch[32768];
	memset(const_cast<char *>(scratch), 0, sizeof(scratch));
}

int main()
{
	for (int i = 0; i < 160; i++) {
		scatter(i);
		lose_cycle(i);
	}
	printf("lose_cycle 160 %d\n", followers);
	lose_named();
	puts("lose_named 1 1");
	lose_tree(5);
	puts("lose_tree 1 30");
	lose_at_depth(20);
	puts("lose_at_depth 20 0");
	for (int i = 0; i < 10; i++) {
		kept_list = keep_link(kept_list);
		keep_data(kept_list);
	}
	wipe_stack();
	return 0;
}
