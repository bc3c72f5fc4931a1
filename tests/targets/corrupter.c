/*
 * corrupter WHAT [SEED [WAIT]]: allocates in four threads and writes garbage into all memory that
 * it shares with ptmem: all shared and writable mappings. How it ends itself does not matter, only
 * whether and how ptmem does.
 *
 *	words     anywhere in it
 *	control   the first page
 *	slots     what threads use
 *	ring      the rings
 *	fields    a word of the first page is set to many values, then restored
 *	records   one bit of words of the ring
 *	shrink    the files after it are made smaller, by /proc/self/map_files
 *	unmap     it is unmapped
 *	zero      the first 64 bytes are 0
 *	remap     private memory takes its place
 *	remove    the pages of its files are freed
 *	nothing   it only allocates until standard input ends, and looks then
 *	room      the rings have no room; then it continues until standard input ends
 *	owner, off, flags, rule_bits, record_max, slots_at, slots_used
 *	          that field of the first page is another; then it continues until standard input ends
 *	head      the heads of the rings are far ahead; then it continues until standard input ends
 *	number    the next record's number is 1; then it continues until standard input ends
 *
 * Prints "ready" when it has found such memory, "none" if it found none within WAIT seconds (1), corrupts for
 * 0.3 s, and prints "OK" at its end. No stdio: that would allocate.
 */
#include "truth.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

#define MAX_AREAS 64
#define THREADS   4
/* offset of struct pad_ring[], in words, and that of its elements */
#define RINGS     397824
#define RING_WORDS 16

struct area {
	uint64_t *start, *end;
};

static struct area areas[MAX_AREAS];
static size_t area_count;
static volatile int is_over;

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

/* Shared and writable: "START-END rw-s ...". */
static void read_line(const char *line)
{
	unsigned long start, end;
	char mode[8];

	if (area_count < MAX_AREAS && sscanf(line, "%lx-%lx %7s", &start, &end, mode) == 3 &&
	    strncmp(mode, "rw-s", 4) == 0)
		areas[area_count++] = (struct area){ (uint64_t *)start, (uint64_t *)end };
}

static void find_areas(void)
{
	static char text[1 << 20];
	size_t size = 0;
	ssize_t n;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	while (size < sizeof(text) - 1 && (n = read(fd, text + size, sizeof(text) - 1 - size)) > 0)
		size += (size_t)n;
	close(fd);
	text[size] = 0;
	area_count = 0;
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		read_line(line);
	}
}

static uint64_t strange(uint64_t *seed)
{
	switch (random_next(seed) % 5) {
	case 0:
		return (uint64_t)random_next(seed) << 32 ^ random_next(seed);
	case 1:
		return random_next(seed) % 64;
	case 2:
		return UINT64_MAX - random_next(seed) % 64;
	case 3:
		return 1ull << random_next(seed) % 64;
	}
	return 0;
}

/* A random place in [from, to) of @a, which are shares of 1024. */
static uint64_t *any_word(const struct area *a, uint64_t from, uint64_t to, uint64_t *seed)
{
	uint64_t count = (uint64_t)(a->end - a->start);

	from = count * from / 1024;
	to = count * to / 1024;
	return a->start + from + ((uint64_t)random_next(seed) << 20 ^ random_next(seed)) % (to - from + (to == from));
}

static void corrupt_words(uint64_t from, uint64_t to, uint64_t *seed)
{
	for (int n = 0; n < 256; n++) {
		const struct area *a = &areas[random_next(seed) % area_count];
		*(volatile uint64_t *)any_word(a, from, to, seed) = strange(seed);
	}
}

/* The ring of a thread; if it cannot be found, all memory. */
static struct area any_ring(uint64_t *seed)
{
	const uint64_t *ring = &areas[0].start[RINGS + random_next(seed) % (THREADS + 1) * RING_WORDS];
	struct area found = { (uint64_t *)ring[2], (uint64_t *)(ring[2] + (ring[3] + 1) / 2) };

	return found.start >= areas[0].start && found.start < found.end && found.end <= areas[0].end ? found : areas[0];
}

static void corrupt_ring(uint64_t *seed)
{
	for (int n = 0; n < 256; n++) {
		struct area ring = any_ring(seed);
		*(volatile uint64_t *)any_word(&ring, 0, 1024, seed) = strange(seed);
	}
}

static void corrupt_control(uint64_t *seed)
{
	*(volatile uint64_t *)&areas[0].start[random_next(seed) % 128] = strange(seed);
}

/* Restores the old value at once: most pads do not see the change. */
static void corrupt_field(uint64_t *seed)
{
	volatile uint64_t *field = &areas[0].start[random_next(seed) % 128];
	uint64_t before = *field;

	for (int n = 0; n < 16; n++)
		*field = n % 2 ? strange(seed) : before + strange(seed) % 4096;
	*field = before;
}

static void corrupt_records(uint64_t *seed)
{
	for (int n = 0; n < 256; n++) {
		struct area ring = any_ring(seed);
		volatile uint64_t *word = any_word(&ring, 0, 1024, seed);
		if (*word) /* sizes, flags and counts of frames are in the halves of words */
			*word ^= 1ull << random_next(seed) % 64;
	}
}

static void shrink(void)
{
	char path[64];

	for (size_t i = 0; i < area_count; i++) {
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", (unsigned long)areas[i].start,
			 (unsigned long)areas[i].end);
		if (truncate(path, 0) == 0)
			say("shrunk\n");
		/*
		 * without privileges that directory cannot be read: there is no other way to the
		 * file
		 */
	}
}

static void await_end_of_input(void)
{
	char c;

	while (read(STDIN_FILENO, &c, 1) > 0)
		;
}

static size_t size_of(const struct area *a)
{
	return (size_t)((char *)a->end - (char *)a->start);
}

static void replace(void)
{
	for (size_t i = 0; i < area_count; i++)
		mmap(areas[i].start, size_of(&areas[i]), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	area_count = 0; /* memory mapped there next may be malloc's */
}

/*
 * Writes @value, of @size bytes, to offset @at, and to @count - 1 more places, @step bytes apart, until ptmem has
 * detached: pads and ptmem write those words, too. ptmem may unmap that memory at any time.
 */
static void keep(size_t at, size_t step, unsigned count, uint64_t value, size_t size)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = POLLIN };
	struct iovec from = { &value, size }, to = from;

	while (area_count > 0 && poll(&input, 1, 1) == 0) {
		for (unsigned i = 0; i < count; i++) {
			to.iov_base = (char *)areas[0].start + at + i * step;
			if (process_vm_writev(getpid(), &from, 1, &to, 1, 0) < 0)
				break;
		}
		find_areas();
	}
	await_end_of_input();
}

/* A word of each struct pad_ring. */
static void keep_in_rings(unsigned word, uint64_t value)
{
	keep((RINGS + word) * 8, RING_WORDS * 8, 2 * THREADS, value, 8);
}

/* Fields of struct pad_control that make pads record too little, or stop at each call. */
static const struct field {
	const char *name;
	unsigned at; /* in 32-bit words */
	uint32_t bits; /* that change */
} fields[] = {
	{ "owner", 0, 0x40000000 }, { "off", 1, 1 }, { "flags", 2, 1 }, { "rule_bits", 6, 1 }, { "record_max", 8, 1u << 18 },
	{ "gap", 10, 256 }, { "slots_at", 14, 4096 }, { "slots_used", 16, 64 },
};

static const struct field *find_field(const char *name)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (strcmp(fields[i].name, name) == 0)
			return &fields[i];
	}
	return NULL;
}

static void change_field(const struct field *field)
{
	uint32_t value = ((uint32_t *)areas[0].start)[field->at] ^ field->bits;

	keep(field->at * sizeof(value), 0, 1, value, sizeof(value));
}

static void corrupt(const char *what, uint64_t *seed)
{
	if (strcmp(what, "words") == 0)
		corrupt_words(0, 1024, seed);
	else if (strcmp(what, "control") == 0)
		corrupt_control(seed);
	else if (strcmp(what, "slots") == 0)
		corrupt_words(8, 900, seed);
	else if (strcmp(what, "ring") == 0)
		corrupt_ring(seed);
	else if (strcmp(what, "fields") == 0)
		corrupt_field(seed);
	else if (strcmp(what, "records") == 0)
		corrupt_records(seed);
	else if (strcmp(what, "shrink") == 0)
		shrink();
	else if (strcmp(what, "unmap") == 0)
		for (size_t i = 0; i < area_count; i++)
			munmap(areas[i].start, size_of(&areas[i]));
	else if (strcmp(what, "zero") == 0)
		memset(areas[0].start, 0, 64);
	else if (strcmp(what, "remap") == 0)
		replace();
	else if (strcmp(what, "remove") == 0)
		for (size_t i = 0; i < area_count; i++)
			madvise(areas[i].start, size_of(&areas[i]), MADV_REMOVE);
}

NOINLINE static void deeper(int depth, uint64_t *seed)
{
	void *volatile p = malloc(random_next(seed) % 300);

	if (depth > 0)
		deeper(depth - 1, seed);
	free(p);
}

static void *allocate(void *arg)
{
	uint64_t seed = (uintptr_t)arg;

	while (!is_over)
		deeper(random_next(&seed) % 12, &seed);
	return NULL;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "words";
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	double wait = argc > 3 ? atof(argv[3]) : 1, start = now();
	pthread_t thread[THREADS];

	alarm((unsigned)wait + 60); /* a thread with a corrupt slot may loop endlessly */
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, allocate, (void *)(i + 1));
	if (strcmp(what, "nothing") == 0) {
		await_end_of_input();
		wait = 0;
	}
	do
		find_areas();
	while (area_count == 0 && now() - start < wait);
	say(area_count > 0 ? "ready\n" : "none\n");
	start = now();
	if (area_count > 0 && strcmp(what, "head") == 0)
		keep_in_rings(0, 1ull << 40); /* struct pad_ring.head */
	else if (area_count > 0 && strcmp(what, "number") == 0)
		keep(32 * 8, 0, 1, 1, 8); /* struct pad_control.next_number */
	else if (area_count > 0 && strcmp(what, "room") == 0)
		keep_in_rings(4, 0); /* .limit: no thread finds room, whatever ptmem has read */
	else if (area_count > 0 && find_field(what))
		change_field(find_field(what));
	else if (area_count > 0)
		alarm(20);
	while (area_count > 0 && now() - start < 0.3) {
		for (int n = 0; n < 64; n++)
			corrupt(what, &seed);
		find_areas(); /* ptmem may have detached */
	}
	is_over = 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	say("OK\n");
	return 0;
}
