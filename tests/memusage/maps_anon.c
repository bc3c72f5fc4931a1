/* an anonymous mapping comes and goes; run with -m */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
int main(void)
{
    void *volatile p = malloc(1000);
    void *m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED || munmap(m, 8192)) return 1;
    free(p);
    return 0;
}
