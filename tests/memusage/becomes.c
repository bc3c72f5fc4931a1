/* touches 40 MiB for a while, then executes itself, being small for a while: times, or ten lines of FILE each */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rows.h"

int main(int argc, char **argv)
{
    char *file = argc > 1 ? argv[1] : NULL, empty[] = "";
    char *small[] = {argv[0], file ? file : empty, "small", NULL};
    if (argc > 2) {
        wait_rows(*file ? file : NULL, 300000);
        return 7;
    }
    wait_rows(file, 200000);
    memset(malloc(40 << 20), 1, 40 << 20);
    wait_rows(file, 300000);
    execv("/proc/self/exe", small);
    return 1;
}
