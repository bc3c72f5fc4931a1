/*
 * orders [DAYS [MS]]: an order book. Each of DAYS days (5) it takes 5,000 orders, reports them and drops them,
 * then it sleeps for MS milliseconds (0). It has a leak, which doc/tutorial.md finds and fixes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct order {
	struct order *next;
	char *customer;
	int count;
	double price[];
};

struct text {
	char *start;
	size_t size, room;
};

static char *customer_name(int id)
{
	char *name = malloc(32);

	snprintf(name, 32, "customer %d", id);
	return name;
}

static struct order *take_order(int number, struct order *next)
{
	int count = 1 + number % 20;
	struct order *o = malloc(sizeof(*o) + count * sizeof(o->price[0]));

	o->next = next;
	o->customer = customer_name(number % 700);
	o->count = count;
	for (int i = 0; i < count; i++)
		o->price[i] = 0.5 * (number % 100 + i);
	return o;
}

static struct order *take_orders(int first, int count)
{
	struct order *list = NULL;

	for (int i = 0; i < count; i++)
		list = take_order(first + i, list);
	return list;
}

static char *format_line(const struct order *o)
{
	char *line = malloc(64);
	double sum = 0;

	for (int i = 0; i < o->count; i++)
		sum += o->price[i];
	snprintf(line, 64, "%s: %.2f\n", o->customer, sum);
	return line;
}

static void append(struct text *t, const char *line)
{
	size_t size = strlen(line);

	if (t->size + size > t->room) {
		t->room = 2 * (t->room + size);
		t->start = realloc(t->start, t->room);
	}
	memcpy(t->start + t->size, line, size);
	t->size += size;
}

static struct text write_report(const struct order *list)
{
	struct text report = { NULL, 0, 0 };

	for (const struct order *o = list; o; o = o->next) {
		char *line = format_line(o);

		append(&report, line);
	}
	return report;
}

static void drop_orders(struct order *list)
{
	while (list) {
		struct order *next = list->next;

		free(list->customer);
		free(list);
		list = next;
	}
}

/* Not by stdio, whose buffers would be in the profile. */
static void print_total(int days, size_t bytes)
{
	char line[64];
	int length = snprintf(line, sizeof(line), "%d reports, %zu bytes\n", days, bytes);

	if (write(STDOUT_FILENO, line, length) < 0)
		_exit(1);
}

int main(int argc, char **argv)
{
	int days = argc > 1 ? atoi(argv[1]) : 5;
	int ms = argc > 2 ? atoi(argv[2]) : 0;
	size_t bytes = 0;

	for (int day = 1; day <= days; day++) {
		struct order *orders = take_orders(1000 * day, 5000);
		struct text report = write_report(orders);

		bytes += report.size;
		free(report.start);
		drop_orders(orders);
		usleep(1000 * ms);
	}
	print_total(days, bytes);
	return 0;
}
