/*
 * monitored: holds 7 blocks of 1,000 bytes, says so, and then at each line of its input allocates one more
 * and says so. Ends with its input. monitored sleep: does nothing between, and sleeps in pause.
 */
#include <string.h>
#include <unistd.h>

#include "truth.h"

NOINLINE static void *hold(size_t n)
{
	void *p = malloc(n);

	NO_TAIL_CALL();
	return p;
}

int main(void)
{
	static void *held[64];
	size_t count = 0;
	char c;

	while (count < 7)
		held[count++] = hold(1000);
	if (write(1, "ready\n", 6) != 6)
		return 1;
	while (read(0, &c, 1) == 1) {
		held[count++] = hold(1000);
		if (count == 64 || write(1, "more\n", 5) != 5)
			return 1;
	}
	for (size_t i = 0; i < count; i++)
		free(held[i]);
	return 5;
}
