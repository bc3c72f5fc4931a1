/* qsort takes a block where the array is too large for its stack */
#include <stdlib.h>
static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}
int main(void)
{
	int n = 50000, *numbers = malloc(n * sizeof(*numbers));
	for (int i = 0; i < n; i++)
		numbers[i] = (i * 7919) % 10007;
	qsort(numbers, n, sizeof(*numbers), compare);
	free(numbers);
	return 0;
}
