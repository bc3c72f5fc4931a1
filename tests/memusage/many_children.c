/* argv[1] children, one after the other; prints how many files the parent has open near the beginning and at the end */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int count_parents_files(void)
{
    char name[64];
    int count = 0;
    sprintf(name, "/proc/%d/fd", (int)getppid());
    DIR *dir = opendir(name);
    while (dir && readdir(dir))
        count++;
    closedir(dir);
    return count;
}

int main(int argc, char **argv)
{
    int n = atoi(argv[1]);
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
        if (i == 10)
            printf("%d\n", count_parents_files());
    }
    usleep(20000);
    printf("%d\n", count_parents_files());
    return 0;
}
