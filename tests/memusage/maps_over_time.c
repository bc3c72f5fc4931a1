/* for the sampler: nothing, 64 MiB mapped, 32 MiB of it touched, all unmapped; 0.3 s each, or ten lines of FILE */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "rows.h"
int main(int argc, char **argv)
{
    const char *file = argc > 1 ? argv[1] : NULL;
    wait_rows(file, 300000);
    char *p = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 1;
    wait_rows(file, 300000);
    memset(p, 1, 32 << 20);
    wait_rows(file, 300000);
    munmap(p, 64 << 20);
    wait_rows(file, 300000);
    return 0;
}
