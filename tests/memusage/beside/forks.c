/* three children, one after the other, each with its own end */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	void *volatile p = malloc(1000);
	for (int i = 1; i <= 3; i++) {
		if (fork() == 0) {
			free(p);
			p = malloc(10 * i);
			exit(0);
		}
		wait(NULL);
	}
	free(p);
	return 0;
}
