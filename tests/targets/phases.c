/*
 * phases: at each byte of its input it does one phase of work, writes "done", and waits for the next. A phase
 * allocates by several paths, resizes blocks, and releases blocks of its own and of earlier phases. Ends with its
 * input, and reports its truth.
 */
#include "truth.h"

#define SLOTS 64

struct slot {
	void *p;
	size_t size;
};

static struct slot slot[SLOTS];

NOINLINE static void *fill_small(size_t size)
{
	void *p = t_malloc(size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void *fill_large(size_t size)
{
	void *p = t_calloc(1, size);

	NO_TAIL_CALL();
	return p;
}

NOINLINE static void resize(struct slot *s, size_t size)
{
	s->p = t_realloc(s->p, s->size, size);
	s->size = size;
	NO_TAIL_CALL();
}

NOINLINE static void release(struct slot *s)
{
	t_free(s->p, s->size);
	*s = (struct slot){NULL, 0};
	NO_TAIL_CALL();
}

NOINLINE static void churn(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		t_free(t_malloc(24 + i % 40), 24 + i % 40);
	NO_TAIL_CALL();
}

/* Every third slot is kept for several phases. */
NOINLINE static void do_phase(unsigned phase)
{
	uint64_t random = 77 + phase;

	for (unsigned i = 0; i < 3 * SLOTS; i++) {
		struct slot *s = &slot[random_next(&random) % SLOTS];
		size_t size = 16 + random_next(&random) % 5000;

		if (!s->p) {
			s->p = size < 1000 ? fill_small(size) : fill_large(size);
			s->size = size;
		} else if (size % 5 == 0) {
			resize(s, size);
		} else if ((s - slot) % 3 || phase % 3 == 2) {
			release(s);
		}
	}
	churn(200);
	NO_TAIL_CALL();
}

int main(void)
{
	unsigned phase = 0;
	char c;

	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1) {
		do_phase(phase++);
		if (write(1, "done\n", 5) != 5)
			return 1;
	}
	truth_report();
	return 0;
}
