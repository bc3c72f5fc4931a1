/* main ends by pthread_exit, a thread goes on, touches 20 MiB and ends the process */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *work(void *arg)
{
    usleep(200000);
    char *volatile p = malloc(20 << 20);
    memset(p, 1, 20 << 20);
    usleep(200000);
    _exit(3);
    return arg;
}
int main(void)
{
    pthread_t t;
    if (pthread_create(&t, NULL, work, NULL)) return 1;
    pthread_exit(NULL);
}
