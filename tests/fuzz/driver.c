/*
 * Feeds a fuzz program with mutations of its seeds: the same ones in every run
 * with the same -s, so that a failure can be repeated.
 *
 *	fuzz_NAME [-n INPUTS] [-s SEED] [FILE...]
 *
 * Each FILE is one more seed. The work is done by a child; the input in hand lies
 * in memory shared with it. When the child dies of it, or takes longer than 10
 * seconds, the input is written to fuzz_NAME.crash beside the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define MAX_SIZE (1 << 16)
#define MAX_SEEDS 256
#define SECONDS 10

/* Shared with the child. */
struct state {
	uint64_t done;
	size_t size;
	uint8_t data[MAX_SIZE];
};

static struct fuzz_seed seeds[MAX_SEEDS];
static size_t seed_count;

/* xorshift64*: the same on every machine. */
static uint64_t next_random(uint64_t *r)
{
	*r ^= *r >> 12;
	*r ^= *r << 25;
	*r ^= *r >> 27;
	return *r * 0x2545f4914f6cdd1dull;
}

static size_t below(uint64_t *r, size_t n)
{
	return n ? (size_t)(next_random(r) >> 16) % n : 0;
}

/* Inserts @n bytes of @from at @at in @in. */
static void insert(struct state *s, size_t at, const void *from, size_t n)
{
	if (n > MAX_SIZE - s->size)
		n = MAX_SIZE - s->size;
	uint8_t copy[64];
	if (n > sizeof(copy))
		n = sizeof(copy);
	memcpy(copy, from, n);
	memmove(s->data + at + n, s->data + at, s->size - at);
	memcpy(s->data + at, copy, n);
	s->size += n;
}

static void mutate_once(struct state *s, uint64_t *r)
{
	static const char *const odd[] = {"0", "-1", "4294967296", "18446744073709551615", "\n", " ", "#", "=",
					  "\xff\xff\xff\xff", "%", "'", "\"", "\\", "n99: 5 0x", "zzzz"};
	size_t at = below(r, s->size + 1), other = below(r, s->size + 1);
	switch (below(r, 7)) {
	case 0: /* a bit */
		if (at < s->size)
			s->data[at] ^= (uint8_t)(1u << below(r, 8));
		break;
	case 1: /* a byte */
		if (at < s->size)
			s->data[at] = (uint8_t)next_random(r);
		break;
	case 2: /* truncate */
		s->size = at;
		break;
	case 3: /* remove a piece */
		if (at < other) {
			memmove(s->data + at, s->data + other, s->size - other);
			s->size -= other - at;
		}
		break;
	case 4: /* repeat a piece */
		if (at < other)
			insert(s, other, s->data + at, other - at);
		break;
	case 5: {
		const char *text = odd[below(r, sizeof(odd) / sizeof(odd[0]))];
		insert(s, at, text, strlen(text));
		break;
	}
	default: { /* a number of 1, 2, 4 or 8 bytes: an extreme value of its type */
		static const uint64_t edges[] = {0, 1, 0x7f, 0x80, 0xffff, 0x7fffffff, 0x80000000, UINT64_MAX};
		size_t n = (size_t)1 << below(r, 4);
		if (at + n <= s->size)
			memcpy(s->data + at, &edges[below(r, 8)], n);
	}
	}
}

static void make_input(struct state *s, uint64_t number, uint64_t seed)
{
	uint64_t r = (number + 1) * 0x9e3779b97f4a7c15ull + seed;
	const struct fuzz_seed *from = &seeds[number < seed_count ? number : below(&r, seed_count)];
	s->size = from->size < MAX_SIZE ? from->size : MAX_SIZE;
	memcpy(s->data, from->data, s->size);
	for (size_t n = number < seed_count ? 0 : 1 + below(&r, 6); n > 0; n--)
		mutate_once(s, &r);
}

/* The sanitizers' reports remain on stderr, messages about the input are discarded. */
void __sanitizer_set_report_fd(void *fd) __attribute__((weak));

static void silence_complaints(void)
{
	int report = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (report < 0 || null < 0)
		abort();
	if (__sanitizer_set_report_fd)
		__sanitizer_set_report_fd((void *)(intptr_t)report);
	dup2(null, STDERR_FILENO);
}

/*
 * In the child. The input is copied to a block of its exact size, so that ASan checks its
 * bounds.
 */
static void run(struct state *s, uint64_t inputs, uint64_t seed)
{
	for (; s->done < inputs; s->done++) {
		make_input(s, s->done, seed);
		uint8_t *copy = malloc(s->size ? s->size : 1);
		if (!copy)
			abort();
		memcpy(copy, s->data, s->size);
		alarm(SECONDS);
		fuzz_one(copy, s->size);
		free(copy);
	}
	alarm(0);
}

static void read_seed(const char *path)
{
	FILE *f = fopen(path, "rb");
	char *data = malloc(MAX_SIZE);
	if (!f || !data || seed_count == MAX_SEEDS) {
		fprintf(stderr, "%s: %s\n", path, f ? "too many seeds" : strerror(errno));
		exit(2);
	}
	seeds[seed_count++] = (struct fuzz_seed){data, fread(data, 1, MAX_SIZE, f)};
	fclose(f);
}

static void save(const struct state *s, const char *program, int status)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s.crash", program);
	FILE *f = fopen(path, "wb");
	if (f) {
		fwrite(s->data, 1, s->size, f);
		fclose(f);
	}
	printf("%s: input %llu %s (status 0x%x); it is in %s\n", program, (unsigned long long)s->done,
	       WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? "takes forever" : "breaks it", status, path);
}

int main(int argc, char **argv)
{
	uint64_t inputs = 20000, seed = 1;
	for (int c; (c = getopt(argc, argv, "n:s:")) != -1;) {
		if (c == '?')
			return 2;
		*(c == 'n' ? &inputs : &seed) = strtoull(optarg, NULL, 10);
	}
	for (const struct fuzz_seed *s = fuzz_seeds; s->data && seed_count < MAX_SEEDS; s++)
		seeds[seed_count++] = *s;
	for (int i = optind; i < argc; i++)
		read_seed(argv[i]);

	struct state *state = mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (state == MAP_FAILED || seed_count == 0)
		return 2;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		silence_complaints();
		run(state, inputs, seed);
		exit(0); /* with the leak check of ASan */
	}
	int status = -1;
	if (child < 0 || waitpid(child, &status, 0) < 0)
		return 2;
	if (status != 0)
		save(state, argv[0], status);
	else
		printf("%llu inputs, from %zu seeds\n", (unsigned long long)state->done, seed_count);
	return status != 0;
}
