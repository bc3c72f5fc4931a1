/* touches 40 MiB for a while, then executes itself, being small for a while */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char *small[] = {argv[0], "small", NULL};
    if (argc > 1) {
        usleep(300000);
        return 7;
    }
    usleep(200000);
    memset(malloc(40 << 20), 1, 40 << 20);
    usleep(300000);
    execv("/proc/self/exe", small);
    return 1;
}
