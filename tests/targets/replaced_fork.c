/*
 * Maps memory of its own over code without a file and over shared memory, which are not its own;
 * allocates, and forks a child that allocates, too. Exit status 0: the child ended with 3.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(void)
{
	void *volatile p[16] = { 0 };

	for (int i = 0; i < 3000; i++) {
		free(p[i % 16]);
		p[i % 16] = malloc((size_t)(i % 300 + 1));
	}
	for (int i = 0; i < 16; i++)
		free(p[i]);
}

static void replace(const char *line)
{
	unsigned long start, stop;
	char rights[8], path[8] = "";

	if (sscanf(line, "%lx-%lx %7s %*s %*s %*s %7s", &start, &stop, rights, path) < 3 ||
	    (rights[3] != 's' && (rights[2] != 'x' || *path)))
		return;
	if (mmap((void *)start, stop - start, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != (void *)start)
		_exit(2);
}

static void replace_all(void)
{
	static char text[1 << 20];
	size_t used = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY);

	while ((n = read(fd, text + used, sizeof(text) - 1 - used)) > 0)
		used += (size_t)n;
	close(fd);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		replace(line);
}

int main(void)
{
	int status;

	allocate();
	replace_all();
	allocate();
	pid_t pid = fork();
	if (pid == 0) {
		allocate();
		_exit(3);
	}
	waitpid(pid, &status, 0);
	allocate();
	return !WIFEXITED(status) || WEXITSTATUS(status) != 3;
}
