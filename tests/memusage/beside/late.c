/* before main, after it, and in atexit */
#include <stdlib.h>
static void *volatile kept[3];
__attribute__((constructor)) static void before(void) { kept[0] = malloc(11); }
__attribute__((destructor)) static void after(void) { kept[1] = malloc(22); }
static void at_exit(void) { kept[2] = malloc(33); }
int main(void)
{
	atexit(at_exit);
	free(kept[0]);
	return 7;
}
