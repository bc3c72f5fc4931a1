/*
 * leaderless [later]: main ends by pthread_exit, at once or at the first t; a thread waits for
 * that, then serves the program's input.
 *
 * expect: the first line is "ready THREAD BLOCKS": the id of the thread, and how many blocks of
 * BLOCK bytes are live. It answers each letter with "done THREAD":
 *
 *	a  allocates a block of LATER bytes
 *	r  releases the last of them
 *	m  allocates and releases MANY blocks
 *	l  opens the library $LIBRARY (libdl.c), which allocates and releases MANY blocks
 *	f  a child allocates MANY blocks and ends
 *	t  another thread goes on, and this one has ended
 *	x  executes the program again, with "later"; the answer is its first line
 *
 * It ends with its input.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCKS 1000
#define BLOCK 1000
#define LATER 5000
#define MANY 2000

char *held[BLOCKS];
static char *later[BLOCKS];
static unsigned later_count;
static pthread_t before; /* to be waited for */

static void say(const char *word, int number)
{
	char text[64];
	int size = snprintf(text, sizeof(text), "%s %d", word, (int)gettid());

	if (number)
		size += snprintf(text + size, sizeof(text) - (size_t)size, " %d", number);
	text[size++] = '\n';
	if (write(STDOUT_FILENO, text, (size_t)size) != size)
		_exit(1);
}

__attribute__((noinline)) static void allocate(void)
{
	later[later_count++ % BLOCKS] = malloc(LATER);
}

__attribute__((noinline)) static void release(void)
{
	free(later[--later_count % BLOCKS]);
}

static void allocate_many(void)
{
	for (int i = 0; i < MANY; i++) {
		allocate();
		release();
	}
}

static void use_library(void)
{
	void *lib = dlopen(getenv("LIBRARY"), RTLD_NOW);
	void *(*make)(uint64_t) = lib ? (void *(*)(uint64_t))dlsym(lib, "library_make") : NULL;
	void (*drop)(void *) = lib ? (void (*)(void *))dlsym(lib, "library_drop") : NULL;

	if (!make || !drop)
		_exit(92);
	for (int i = 0; i < MANY; i++)
		drop(make(LATER));
}

static void run_child(void)
{
	pid_t child = fork();

	if (child == 0) {
		allocate_many();
		_exit(0);
	}
	if (child < 0 || waitpid(child, NULL, 0) != child)
		_exit(91);
}

static void *work(void *word);

/* Another thread waits until this one has ended, says @word, and serves the input. */
static void hand_over(char *word)
{
	pthread_t next;

	before = pthread_self();
	if (pthread_create(&next, NULL, work, word) != 0)
		_exit(90);
	pthread_exit(NULL);
}

static void serve(void)
{
	char letter;

	while (read(STDIN_FILENO, &letter, 1) == 1) {
		if (letter == 'a')
			allocate();
		else if (letter == 'r')
			release();
		else if (letter == 'm')
			allocate_many();
		else if (letter == 'l')
			use_library();
		else if (letter == 'f')
			run_child();
		else if (letter == 't')
			hand_over("done");
		else if (letter == 'x')
			execl("/proc/thread-self/exe", "leaderless", "later", (char *)NULL);
		say("done", 0);
	}
	_exit(0);
}

static void *work(void *word)
{
	pthread_join(before, NULL);
	say(word, strcmp(word, "ready") == 0 ? BLOCKS : 0);
	serve();
	return NULL;
}

int main(int argc, char **argv)
{
	(void)argv;
	for (int i = 0; i < BLOCKS; i++)
		held[i] = memset(malloc(BLOCK), 1, BLOCK);
	if (argc == 1)
		hand_over("ready");
	say("ready", BLOCKS);
	serve();
}
