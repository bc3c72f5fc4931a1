/* What is freed at each step of the end: handlers, the program's destructors, and its library's. */
#include <stdlib.h>

void library_use(void);
static void *of_program;

static void at_exit(void)
{
	free(NULL);
	free(malloc(200));
}

__attribute__((destructor)) static void destroy(void)
{
	free(of_program);
	free(malloc(300));
}

int main(void)
{
	atexit(at_exit);
	of_program = malloc(100);
	for (int i = 0; i < 40; i++) /* often enough for jumps */
		free(calloc(1, 30));
	library_use();
	return 0;
}
