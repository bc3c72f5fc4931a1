/* Several call sites in one function: prints "place LINE BYTES" for each, all live at the end. */
#include <stdio.h>
#include <stdlib.h>

#define KEEP(k, size)                                 \
	do {                                          \
		kept[k] = malloc(size);               \
		bytes[k] += size, line[k] = __LINE__; \
	} while (0)

static void *volatile kept[3];
static unsigned bytes[3], line[3];
static char buffer[BUFSIZ];

int main(void)
{
	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* not from the heap */
	for (int i = 0; i < 100; i++) {
		KEEP(0, 10007);
		KEEP(1, 103);
		if (i > 50)
			KEEP(2, 50021);
	}
	for (int k = 0; k < 3; k++)
		printf("place %u %u\n", line[k], bytes[k]);
	return 0;
}
