/* Variables that own structures of many kinds; see owned.h. */
#include <pthread.h>
#include <stdint.h>
#include <unistd.h>

#include "owned.h"

enum { NODES = 500, BUCKETS = 64, SLOTS = 40, LARGE = 1 << 20 };

/* -- lists -- */

struct node {
	struct node *next;
	char *text;
	uint64_t number;
};

static struct node *make_list(size_t count, struct node *end)
{
	for (size_t i = 0; i < count; i++) {
		struct node *n = make(sizeof(*n) + i % 50);

		n->text = make(5 + i % 90);
		n->next = end;
		end = n;
	}
	return end;
}

static void drop_list(struct node *n, const struct node *end)
{
	while (n != end) {
		struct node *next = n->next;

		drop(n->text);
		drop(n);
		n = next;
	}
}

struct node *list;
static struct node *hidden_list;

static void drop_global_list(void)
{
	drop_list(list, NULL);
	list = NULL;
}

static void drop_hidden_list(void)
{
	drop_list(hidden_list, NULL);
	hidden_list = NULL;
}

static struct node **in_function(void)
{
	static struct node *kept;

	return &kept;
}

static void drop_in_function(void)
{
	drop_list(*in_function(), NULL);
	*in_function() = NULL;
}

/* -- a tree with pointers to parents -- */

struct branch {
	struct branch *up, *left, *right;
	char *label;
};

struct branch *tree;

static struct branch *make_tree(struct branch *up, unsigned depth)
{
	struct branch *b = make(sizeof(*b));

	b->up = up;
	b->label = make(1 + depth * 9);
	if (depth > 0) {
		b->left = make_tree(b, depth - 1);
		b->right = depth % 3 ? make_tree(b, depth - 1) : NULL;
	}
	return b;
}

static void drop_branch(struct branch *b)
{
	if (!b)
		return;
	drop_branch(b->left);
	drop_branch(b->right);
	drop(b->label);
	drop(b);
}

static void drop_tree(void)
{
	drop_branch(tree);
	tree = NULL;
}

/* -- a hash table -- */

static struct {
	size_t count;
	struct node **bucket;
} table;

static void fill_table(void)
{
	table.bucket = make(BUCKETS * sizeof(*table.bucket));
	for (table.count = 0; table.count < NODES; table.count++) {
		struct node **b = &table.bucket[table.count * 7 % BUCKETS];

		*b = make_list(1, *b);
	}
}

static void drop_table(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		drop_list(table.bucket[i], NULL);
	drop(table.bucket);
	table.bucket = NULL;
}

/* -- a cycle -- */

struct node *ring;

static void drop_ring(void)
{
	struct node *last = ring;

	while (last->next != ring)
		last = last->next;
	last->next = NULL;
	drop_list(ring, NULL);
	ring = NULL;
}

/* -- an intrusive list, whose links lead to the inside of blocks, in both directions -- */

struct link {
	struct link *next, *previous;
};

struct item {
	uint64_t number[3];
	struct link link;
};

struct link items = {&items, &items};

static void add_item(void)
{
	struct item *i = make(sizeof(*i));

	i->link = (struct link){&items, items.previous};
	items.previous->next = &i->link;
	items.previous = &i->link;
}

static void drop_items(void)
{
	while (items.next != &items) {
		struct link *l = items.next;

		items.next = l->next;
		drop((char *)l - offsetof(struct item, link));
	}
	items.previous = &items;
}

/* -- an array of pointers, and one with tags in their lowest bits -- */

static char *slots[SLOTS];
uintptr_t tagged[SLOTS];

static void drop_slots(void)
{
	for (size_t i = 0; i < SLOTS; i++) {
		drop(slots[i]);
		slots[i] = NULL;
	}
}

static void drop_tagged(void)
{
	for (size_t i = 0; i < SLOTS; i++) {
		drop((void *)(tagged[i] & ~(uintptr_t)7));
		tagged[i] = 0;
	}
}

/* -- two lists that end with the same nodes -- */

struct node *one, *other;

static void drop_one(void)
{
	struct node *common = one;

	for (size_t i = 0; i < NODES / 2; i++)
		common = common->next;
	drop_list(one, common);
	one = NULL;
}

/* When the other is gone, too, what both had is its own. */
static void drop_other(void)
{
	drop_list(other, NULL);
	other = NULL;
}

/* -- one block with a mapping of its own -- */

char *large;

static void drop_large(void)
{
	drop(large);
	large = NULL;
}

/* -- a variable of the thread, one of another thread, and stacks -- */

static _Thread_local struct node *local;
static struct node *volatile *of_stack, *volatile *of_thread;
static struct node **of_other_tls;
static pthread_barrier_t is_ready;

static void drop_local(void)
{
	drop_list(local, NULL);
	local = NULL;
}

static void drop_other_local(void)
{
	drop_list(*of_other_tls, NULL);
	*of_other_tls = NULL;
}

static void drop_stack(void)
{
	drop_list(*of_stack, NULL);
	*of_stack = NULL;
}

static void drop_thread(void)
{
	drop_list(*of_thread, NULL);
	*of_thread = NULL;
}

NOINLINE static void hold_on_stack(void)
{
	struct node *volatile held = make_list(NODES / 2, NULL);

	of_thread = &held;
	local = make_list(NODES / 5, NULL);
	of_other_tls = &local;
	pthread_barrier_wait(&is_ready);
	for (;;)
		pause();
}

static void *run_thread(void *arg)
{
	hold_on_stack();
	return arg;
}

/* -- commands -- */

static const struct owned variables[] = {
	{"list", drop_global_list}, {"hidden_list", drop_hidden_list}, {"kept", drop_in_function},
	{"tree", drop_tree}, {"table", drop_table}, {"ring", drop_ring}, {"items", drop_items},
	{"slots", drop_slots}, {"tagged", drop_tagged}, {"one", drop_one}, {"other", drop_other},
	{"large", drop_large}, {"local", drop_local}, {"other_local", drop_other_local},
	{"stack", drop_stack}, {"thread", drop_thread},
};

static void fill(void)
{
	list = make_list(NODES, NULL);
	hidden_list = make_list(NODES * 2, NULL);
	*in_function() = make_list(NODES / 3, NULL);
	tree = make_tree(NULL, 10);
	fill_table();
	ring = make_list(NODES, NULL);
	struct node *last = ring;
	while (last->next)
		last = last->next;
	last->next = ring;
	for (size_t i = 0; i < NODES; i++)
		add_item();
	for (size_t i = 0; i < SLOTS; i++) {
		slots[i] = make(i * 30 + 1);
		tagged[i] = (uintptr_t)make(i * 20 + 8) | i % 8;
	}
	struct node *common = make_list(NODES / 4, NULL);

	one = make_list(NODES / 2, common);
	other = make_list(NODES / 7, common);
	large = make(LARGE);
	local = make_list(NODES / 6, NULL);
}

static void obey(const char *name)
{
	drop_named(variables, sizeof(variables) / sizeof(*variables), name);
}

int main(void)
{
	struct node *volatile held;
	pthread_t thread;

	fill();
	held = make_list(NODES / 8, NULL);
	of_stack = &held;
	stays = make(1);
	pthread_barrier_init(&is_ready, NULL, 2);
	if (pthread_create(&thread, NULL, run_thread, NULL) != 0)
		return 1;
	pthread_barrier_wait(&is_ready);
	obey_lines(obey);
	return 0;
}
