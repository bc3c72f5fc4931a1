/* 20,000 calls deep, a block in each */
#include <stdlib.h>

static int descend(int n)
{
    volatile char room[200];
    room[0] = (char)n;
    char *p = malloc((size_t)n % 100);
    int sum = n ? descend(n - 1) : 0;
    free(p);
    return sum + room[0];
}

int main(void)
{
    return descend(20000) & 7;
}
