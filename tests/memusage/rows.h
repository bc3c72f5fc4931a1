/* What the sampler's programs wait for: a time, or that the file NAME has ten lines more. */
#ifndef ROWS_H
#define ROWS_H

#include <fcntl.h>
#include <unistd.h>

static long count_lines(const char *name)
{
    static char text[4096];
    int fd = open(name, O_RDONLY);
    long lines = 0;
    for (ssize_t n; fd >= 0 && (n = read(fd, text, sizeof(text))) > 0;)
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
    close(fd);
    return lines;
}

static void wait_rows(const char *name, useconds_t us)
{
    if (!name) {
        usleep(us);
        return;
    }
    for (long before = count_lines(name); count_lines(name) < before + 10;)
        usleep(10000);
}

#endif
