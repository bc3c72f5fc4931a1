/*
 * fork_beside N: the first thread makes N children, one after the other, while another one creates and
 * joins threads all the time. All of them allocate. Exit status 0: each child ended with 3.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool is_over;

static void allocate(int count)
{
	for (int i = 0; i < count; i++) {
		void *volatile p = malloc((size_t)(i % 300 + 1));

		free(p);
	}
}

static void *work(void *arg)
{
	(void)arg;
	allocate(40);
	return NULL;
}

static void *make_threads(void *arg)
{
	pthread_t thread;

	while (!is_over)
		if (pthread_create(&thread, NULL, work, arg) == 0)
			pthread_join(thread, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 100, status;
	pthread_t thread;

	if (pthread_create(&thread, NULL, make_threads, NULL) != 0)
		return 2;
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			allocate(20);
			_exit(3);
		}
		if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || WEXITSTATUS(status) != 3)
			return 1;
		allocate(5);
	}
	is_over = 1;
	pthread_join(thread, NULL);
	return 0;
}
