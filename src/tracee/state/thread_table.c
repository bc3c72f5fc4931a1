/*
 * There may be many thousands of threads, so they are hashed by tid. Loops cannot use the hash
 * table alone: removing an entry moves others into the gap, adding one may move all. Hence the
 * second array, of all threads with ascending serial numbers, in which a cursor finds its place
 * again.
 */
#include "tracee/state/thread_table.h"

#include <string.h>

#include "tracee/state/thread.h"

static size_t find_slot(const struct thread_table *table, pid_t tid)
{
	size_t mask = table->capacity - 1, i = hash_u64((uint64_t)tid) & mask;
	while (table->slots[i] && table->slots[i]->tid != tid)
		i = (i + 1) & mask;
	return i;
}

static void resize(struct thread_table *table, size_t capacity)
{
	free(table->slots);
	table->slots = xcalloc(capacity, sizeof(struct thread *));
	table->capacity = capacity;
	for (size_t i = 0; i < table->order.count; i++)
		table->slots[find_slot(table, table->order.data[i]->tid)] = table->order.data[i];
}

void thread_table_deinit(struct thread_table *table)
{
	free(table->slots);
	vec_deinit(&table->order);
	*table = (struct thread_table){0};
}

size_t thread_table_count(const struct thread_table *table)
{
	return table->order.count;
}

struct thread *thread_table_find(const struct thread_table *table, pid_t tid)
{
	return table->capacity ? table->slots[find_slot(table, tid)] : NULL;
}

void thread_table_add(struct thread_table *table, struct thread *th)
{
	if (table->order.count * 2 >= table->capacity)
		resize(table, MAX(table->capacity * 2, (size_t)64));
	table->slots[find_slot(table, th->tid)] = th;
	th->serial = ++table->last_serial;
	*vec_add(&table->order) = th;
}

void thread_table_take(struct thread_table *table, const struct thread *th)
{
	size_t mask = table->capacity - 1, free_slot = find_slot(table, th->tid);
	table->slots[free_slot] = NULL;
	/* entries that collided with it move up */
	for (size_t i = (free_slot + 1) & mask; table->slots[i]; i = (i + 1) & mask) {
		struct thread *moved = table->slots[i];
		table->slots[i] = NULL;
		table->slots[find_slot(table, moved->tid)] = moved;
	}
	struct thread **order = table->order.data;
	size_t at = vec_search(&table->order, e, (*e)->serial < th->serial);
	memmove(&order[at], &order[at + 1], (--table->order.count - at) * sizeof(*order));
}

struct thread *thread_table_next(const struct thread_table *table, struct thread_cursor *at)
{
	struct thread *const *order = table->order.data;
	size_t i = MIN(at->hint, table->order.count);
	while (i > 0 && order[i - 1]->serial > at->serial) /* some before it were removed */
		i--;
	while (i < table->order.count && order[i]->serial <= at->serial)
		i++;
	at->hint = i;
	if (i == table->order.count)
		return NULL;
	at->serial = order[i]->serial;
	return order[i];
}

struct thread *thread_table_next_in(const struct thread_table *table, struct thread_cursor *at,
				    const struct address_space *s)
{
	struct thread *th;
	do {
		th = thread_table_next(table, at);
	} while (th && th->process->space != s);
	return th;
}
