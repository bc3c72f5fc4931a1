/* main ends by pthread_exit, a thread continues, touches 20 MiB and ends the process: 0.2 s each, or ten lines of FILE */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "rows.h"
static void *work(void *file)
{
    wait_rows(file, 200000);
    char *volatile p = malloc(20 << 20);
    memset(p, 1, 20 << 20);
    wait_rows(file, 200000);
    _exit(3);
    return file;
}
int main(int argc, char **argv)
{
    pthread_t t;
    if (pthread_create(&t, NULL, work, argc > 1 ? argv[1] : NULL)) return 1;
    pthread_exit(NULL);
}
