/* Programs that obey lines on standard input; without stdio, which would allocate. */
#ifndef COMMANDS_H
#define COMMANDS_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline void say(const char *text)
{
	size_t size = strlen(text);

	if (write(STDOUT_FILENO, text, size) != (ssize_t)size)
		_exit(1);
}

/* Says "ready", and calls @obey for each line, until there are no more. */
static inline void obey_lines(void (*obey)(const char *line))
{
	char line[64];
	size_t size = 0;

	say("ready\n");
	while (size < sizeof(line) && read(STDIN_FILENO, &line[size], 1) == 1) {
		if (line[size++] != '\n')
			continue;
		line[size - 1] = '\0';
		obey(line);
		size = 0;
	}
}

#endif
