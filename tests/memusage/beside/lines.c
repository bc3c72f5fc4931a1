/* getline grows its buffer, stdio has one of its own */
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	FILE *f = fopen(argv[0], "r");
	char *line = NULL;
	size_t size = 0;
	if (!f || argc > 2)
		return 1;
	for (int i = 0; i < 40 && getdelim(&line, &size, 'm', f) > 0; i++)
		;
	free(line);
	fclose(f);
	return 0;
}
