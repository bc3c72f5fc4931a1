/* Preloaded into a program under Valgrind: copies its /proc/self/maps to $MAPS_OUT at exit. */
#include <stdio.h>
#include <stdlib.h>

static __attribute__((destructor)) void dump_maps(void)
{
	const char *path = getenv("MAPS_OUT");
	FILE *in = fopen("/proc/self/maps", "r");
	FILE *out = path ? fopen(path, "w") : NULL;
	for (int c; in && out && (c = getc(in)) != EOF;)
		putc(c, out);
	if (in)
		fclose(in);
	if (out)
		fclose(out);
}
