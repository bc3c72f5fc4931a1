/*
 * level: holds blocks of 1 MB, all of which it writes to. At each + of its input it allocates one more, at each -
 * it releases one, and then says how many there are. Ends with its input.
 */
#include "truth.h"

#define SIZE 1000000
#define SLOTS 2000

NOINLINE static void *hold(void)
{
	void *p = t_malloc(SIZE);

	CHECK(p);
	memset(p, 1, SIZE);
	return p;
}

int main(void)
{
	static void *block[SLOTS];
	unsigned count = 0;
	char c;

	if (write(1, "0\n", 2) != 2)
		return 1;
	while (read(0, &c, 1) == 1) {
		struct text t = { { 0 }, 0 };

		if (c == '+' && count < SLOTS)
			block[count++] = hold();
		else if (c == '-' && count > 0)
			t_free(block[--count], SIZE);
		text_number(&t, "", count);
		text_add(&t, "\n");
		if (write(1, t.s, t.n) != (ssize_t)t.n)
			return 1;
	}
	return 0;
}
