/*
 * A library for scripts/what_if_table, preloaded after the allocator: when the process exits it
 * writes resident memory of the heap, at the end and at the peak, to the file in HEAP_AT_EXIT. Heap
 * is what ptmem-replay calls so: anonymous memory without data of objects and stacks. What it needs
 * itself is shared memory, which does not count.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TEXT_MAX = 4 << 20 };

static char *read_text(const char *path, char *text)
{
	int fd = open(path, O_RDONLY);
	size_t size = 0;
	ssize_t n;

	while ((n = read(fd, text + size, TEXT_MAX - 1 - size)) > 0)
		size += (size_t)n;
	close(fd);
	text[size] = '\0';
	return text;
}

static unsigned long kib_after(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoul(at + strlen(name), NULL, 10) : 0;
}

__attribute__((destructor)) static void write_heap(void)
{
	const char *path = getenv("HEAP_AT_EXIT");
	char *text = mmap(NULL, TEXT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned long heap = 0;
	int is_other = 0;
	char line[100];

	if (!path || text == MAP_FAILED)
		return;
	read_text("/proc/self/status", text);
	unsigned long high = kib_after(text, "\nVmHWM:") - kib_after(text, "\nVmRSS:");

	read_text("/proc/self/smaps", text);
	for (char *at = text, *end; (end = strchr(at, '\n')); at = end + 1) {
		*end = '\0';
		if (strchr("0123456789abcdef", *at))
			is_other = strchr(at, '/') || strstr(at, "[stack]");
		else if (!is_other && strncmp(at, "Anonymous:", 10) == 0)
			heap += kib_after(at, "Anonymous:");
	}
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
	int size = snprintf(line, sizeof(line), "%lu %lu\n", heap, heap + high);
	ssize_t n = write(fd, line, (size_t)size);

	(void)n;
	close(fd);
}
