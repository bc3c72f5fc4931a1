/* what libc allocates for its callers */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(void)
{
	char *volatile a = strdup("twelve bytes"), *volatile b = strndup("cut short", 3), *c = NULL;
	if (asprintf(&c, "%s and %s, %0200d", a, b, 7) < 0)
		return 1;
	for (int i = 0; i < 50; i++)
		free(strdup(c));
	free(a);
	free(b);
	free(c);
	return 0;
}
