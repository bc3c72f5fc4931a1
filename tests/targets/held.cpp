/*
 * Objects that variables lead to by known ways, and functions that allocated them. Each line on
 * standard input says what to do.
 *
 *	facts   prints what there is, "KIND NAME<tab>BLOCKS<tab>BYTES", by malloc_usable_size, then "done"
 *	more    allocates more orders
 *	large   allocates 8 MiB
 *
 * expect: the first line is "ready". It ends without freeing anything.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <malloc.h>
#include <map>
#include <unistd.h>
#include <vector>

#include "commands.h"
#include "noinline.h"

enum { SESSIONS = 20, ORDERS = 30, FAVOURITES = 10, PARCELS = 7, LOST = 3 };

struct Session;

struct Order {
	char *name;
	Session *session;
	char *note;
	long number;
};

struct Session {
	std::vector<Order *> orders;
};

struct parcel {
	parcel *next;
	double weight[4];
};

struct Cache {
	std::map<int, Session *> by_user;
};

static Cache g_cache;
Order *g_favourites[FAVOURITES];
parcel *g_parcels;
char *g_texts[5];
Session *g_more;
char *g_large;

/* -- facts -- */

struct fact {
	const char *text;
	size_t blocks = 0, bytes = 0;

	fact(const char *name) : text(name) {}
};

static char *note; /* while it is made: all orders have it */

static fact orders("type Order"), sessions("type Session"), parcels("type parcel"),
	names("way name"), favourites("way favourite"), made("function make_order"),
	texts("function parcel"), more("function make_more"), lost("leaked"), shared("shared"),
	note_only("note");

static void count(fact &f, void *p)
{
	f.blocks++;
	f.bytes += malloc_usable_size(p);
}

static void print(const fact &f)
{
	char line[100];

	snprintf(line, sizeof(line), "%s\t%zu\t%zu\n", f.text, f.blocks, f.bytes);
	say(line);
}

/* -- objects -- */

NOINLINE static char *copy_name(size_t size)
{
	char *p = (char *)memset(malloc(size), 'n', size);

	p[size - 1] = '\0';
	return p;
}

NOINLINE static Order *make_order(Session *s, int number)
{
	Order *o = (Order *)calloc(1, sizeof(*o));

	o->name = copy_name(20 + number % 50);
	o->session = s;
	o->note = note;
	o->number = number;
	count(made, o);
	count(made, o->name);
	return o;
}

NOINLINE static void fill_session(Session *s, int first)
{
	s->orders.reserve(ORDERS);
	for (int k = 0; k < ORDERS; k++) {
		Order *o = make_order(nullptr, first + k);

		s->orders.push_back(o);
		count(orders, o);
	}
}

NOINLINE static Session *make_session(int number)
{
	Session *s = new (calloc(1, sizeof(*s))) Session();

	fill_session(s, number * ORDERS);
	count(sessions, s);
	return s;
}

/* A function with the name of a type. */
NOINLINE static void parcel(void)
{
	for (char *&text : g_texts) {
		text = copy_name(300);
		count(texts, text);
	}
}

NOINLINE static void make_parcels(void)
{
	for (int i = 0; i < PARCELS; i++) {
		struct parcel *p = (struct parcel *)calloc(1, sizeof(*p));

		p->next = g_parcels;
		g_parcels = p;
		count(parcels, p);
	}
}

NOINLINE static void lose_orders(Session *s)
{
	for (int i = 0; i < LOST; i++) {
		Order *o = make_order(s, i);

		count(lost, o);
		count(lost, o->name);
	}
}

NOINLINE static void make_more(void)
{
	Session *s = g_more = new (calloc(1, sizeof(*s))) Session();

	fill_session(s, 0);
	count(sessions, s);
	count(more, s);
	count(more, s->orders.data());
	for (Order *o : s->orders) {
		count(names, o->name);
		count(more, o);
		count(more, o->name);
	}
}

NOINLINE static void fill(void)
{
	note = copy_name(100);
	count(note_only, note);
	count(shared, note);
	for (int i = 0; i < SESSIONS; i++)
		g_cache.by_user[i] = make_session(i);
	for (auto &entry : g_cache.by_user)
		for (Order *o : entry.second->orders)
			count(names, o->name);
	for (int i = 0; i < FAVOURITES; i++) {
		Order *o = g_favourites[i] = g_cache.by_user[i]->orders[i];

		count(favourites, o);
		count(shared, o);
		count(shared, o->name);
	}
	make_parcels();
	parcel();
	note = nullptr;
	lose_orders(g_cache.by_user[0]);
}

/* Addresses that earlier calls left on the stack would hold what is lost. */
NOINLINE static void clear_stack(void)
{
	volatile char room[8192];

	for (size_t i = 0; i < sizeof(room); i++)
		room[i] = 0;
}

static void obey(const char *line)
{
	if (strcmp(line, "more") == 0)
		make_more();
	if (strcmp(line, "large") == 0)
		g_large = copy_name(8 << 20);
	clear_stack();
	for (const fact *f : {&orders, &sessions, &parcels, &names, &favourites, &made, &texts, &more,
			      &lost, &shared, &note_only})
		print(*f);
	say("done\n");
}

int main()
{
	fill();
	clear_stack();
	obey_lines(obey);
	_exit(0);
}
