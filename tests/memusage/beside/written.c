/* files mapped writable, in sizes that are no whole pages; run with -m, where memusage's peak is right for these */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
    char name[] = "scratch.XXXXXX", *last = NULL;
    int fd = mkstemp(name);
    unlink(name);
    if (ftruncate(fd, 1 << 20))
        return 1;
    for (size_t i = 0; i < 5; i++) {
        char *p = mmap(NULL, 10000 + i * 5000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        p[0] = 1;
        p = mremap(p, 10000 + i * 5000, 50000, MREMAP_MAYMOVE);
        p = mremap(p, 50000, 20000, 0);
        if (last)
            munmap(last, 20000);
        last = p;
    }
    return 0;
}
