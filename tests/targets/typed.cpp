/*
 * Blocks of known types. Does what the letters on standard input say, and answers each with lines
 * "KIND NAME<tab>BLOCKS<tab>BYTES" of what it has made, then "done":
 *
 *	a  one of each kind
 *	p  objects with nothing else on their pages, "pages" of which are the last line
 *	h  objects whose types lie
 *	w  objects that different things point to
 *	f  forks while another thread has 7 blocks of 712 bytes in its cache; says "child PID 0"
 *	m  aligned blocks with mappings of their own that were resized: "ADDRESS 1 BYTES"
 *	q  ends
 *
 * The names are those that --inspect shows.
 */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <new>

#define MANY 1000

namespace shapes {
struct Circle {
	virtual ~Circle() {}
	virtual int area() { return radius * radius * 3; }
	int radius = 1;
};
struct Named {
	virtual ~Named() {}
	const char *name = "none";
};
struct Both : Circle, Named {
	int area() override { return 0; }
};
}

template <typename T, int N> struct Box {
	virtual ~Box() {}
	T content[N] = {};
};

namespace {
struct Hidden {
	virtual ~Hidden() {}
	uint64_t word[5] = {1, 2, 3, 4, 5};
};
}

struct Pin {
	virtual ~Pin() {}
	uint64_t word[6] = {1, 2, 3, 4, 5, 6};
};

struct file_operations {
	int (*open)(int);
	int (*close)(int);
};
static int open_it(int x) { return x + 1; }
static int close_it(int x) { return x - 1; }
extern "C" {
extern const struct file_operations plain_operations;
const struct file_operations plain_operations = {open_it, close_it};
}

static void *held[20000];
static size_t held_count;
static char line[256];

static void say(const char *text)
{
	if (write(STDOUT_FILENO, text, strlen(text)) < 0)
		_exit(1);
}

static void say_kind(const char *name, size_t blocks, size_t bytes)
{
	snprintf(line, sizeof(line), "%s\t%zu\t%zu\n", name, blocks, bytes);
	say(line);
}

/* @make fills a block and returns it. */
template <typename F> static void make(const char *name, size_t count, F make_one)
{
	size_t bytes = 0;

	for (size_t i = 0; i < count; i++) {
		void *p = make_one(i);

		held[held_count++] = p;
		bytes += malloc_usable_size(p);
	}
	say_kind(name, count, bytes);
}

/* As large as what malloc gives, so that none of it is an older block's. */
static char *filled(size_t size, int byte)
{
	char *p = (char *)malloc(size);

	memset(p, byte, malloc_usable_size(p));
	return p;
}

static void *text(size_t i)
{
	char *p = filled(24 + i % 300, i % 2 ? 'x' : 0);

	if (i % 2 == 0)
		strcpy(p, i % 4 ? "a text of its own" : "d\xc3\xa9j\xc3\xa0 vu\n");
	return p;
}

static void *pointers(size_t i)
{
	void **p = (void **)filled(8 * (3 + i % 60), 0);

	for (size_t k = 0; k < 3 + i % 60; k++)
		p[k] = k % 5 == 4 ? nullptr : held[(i + k) % held_count];
	return p;
}

static void *numbers(size_t i)
{
	uint64_t *p = (uint64_t *)filled(88, 0);

	for (size_t k = 0; k < 11; k++)
		p[k] = (i + 1) * (k + 3) << (k % 2 ? 1 : 50);
	return p;
}

static void *table(size_t)
{
	const struct file_operations **p = (const struct file_operations **)filled(72, 5);

	*p = &plain_operations;
	return p;
}

static void make_all()
{
	make("C++ shapes::Circle", 1000, [](size_t) -> void * { return new shapes::Circle; });
	make("C++ shapes::Both", 100, [](size_t) -> void * { return new shapes::Both; });
	make("C++ Box<int, 3>", 500, [](size_t) -> void * { return new Box<int, 3>; });
	make("C++ Box<char, 400>", 50, [](size_t) -> void * { return new Box<char, 400>; });
	make("C++ (anonymous namespace)::Hidden", 300, [](size_t) -> void * { return new Hidden; });
	make("text", 701, text);
	make("pointers", 400, pointers);
	make("zeros", 250, [](size_t i) -> void * { return filled(24 + i * 8, 0); });
	make("88 bytes", 600, numbers);
	make("struct with &plain_operations", 350, table);
	say("done\n");
}

/* -- pages -- */

static void pin()
{
	enum { PINS = 200, GAP = 8000 };
	static void *gap[PINS + 1], *pins[PINS];
	uintptr_t last = 0;
	size_t pages = 0;

	for (size_t i = 0; i < PINS; i++) {
		gap[i] = filled(GAP, 1);
		pins[i] = malloc(sizeof(Pin));
		new (pins[i]) Pin;
	}
	gap[PINS] = filled(2 * GAP, 1);
	/* the first and the last stay, so that no page has other blocks */
	for (size_t i = 1; i < PINS; i++)
		free(gap[i]);
	for (size_t i = 1; i + 1 < PINS; i++) {
		uintptr_t start = ((uintptr_t)pins[i] - 8) / 4096;
		uintptr_t end = ((uintptr_t)pins[i] + malloc_usable_size(pins[i]) - 1) / 4096;

		pages += end - start + (start != last);
		last = end;
	}
	/* the first and the last are replaced: theirs are pages with others */
	memset(pins[0], 5, malloc_usable_size(pins[0]));
	memset(pins[PINS - 1], 5, malloc_usable_size(pins[PINS - 1]));
	say_kind("pages", PINS - 2, pages);
	say("done\n");
}

/* -- types that lie -- */

static uint64_t lies[64][8];

static void lie()
{
	size_t page = 4096;
	char *end = (char *)mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static char names[4][2000] = {"3\x1b[1", "1a", "", ""};

	munmap(end + page, page);
	memset(names[2], '1', sizeof(names[2]));
	strcpy(names[3], "9bad");
	for (size_t i = 0; i < 64; i++) {
		uint64_t self = (uint64_t)(uintptr_t)&lies[i][2];
		/* distance, type_info, functions; type_info: table, name */
		lies[i][0] = i % 7 == 6;
		lies[i][1] = i % 5 == 4 ? (uint64_t)-8 : i % 5 == 3 ? self + 1 : self + 16;
		lies[i][2] = i % 3 ? self : (uint64_t)-16;
		lies[i][4] = i % 11 == 10 ? (uint64_t)-8 : self;
		lies[i][5] = i % 4 == 3 ? (uint64_t)(uintptr_t)end + page - 1
					: (uint64_t)(uintptr_t)names[i % 4];
		uint64_t *p = (uint64_t *)filled(104, 7);

		p[0] = self + (i % 13 == 12 ? 4 : 0);
		/* as Python's types: a cycle of types, and names that end nowhere */
		p[1] = (uint64_t)(uintptr_t)lies[i];
		held[held_count++] = p;
	}
	say("done\n");
}

/* -- what points to blocks -- */

template <int N> struct Held {
	virtual ~Held() {}
	void *other = nullptr;
	uintptr_t word[3] = {N, N, N};
};

extern "C" {
Held<1> *in_variable[10];
}
static thread_local Held<3> *volatile in_thread[4];
static volatile uintptr_t hidden[7];

/* Far below the stack of those who wait, so that nothing is left of it there. */
template <typename F> __attribute__((noinline)) static void far_below(F make)
{
	volatile char room[65536];

	room[0] = 1;
	make();
	room[65535] = room[0];
}

static void hold(Held<2> **in_stack)
{
	far_below([=] {
		void **mapping = (void **)mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		for (size_t i = 0; i < 10; i++) {
			in_variable[i] = new Held<1>;
			in_variable[i]->other = new Held<4>;
		}
		for (size_t i = 0; i < 5; i++)
			in_stack[i] = new Held<2>;
		for (size_t i = 0; i < 4; i++)
			in_thread[i] = new Held<3>;
		for (size_t i = 0; i < 7; i++)
			hidden[i] = ~(uintptr_t) new Held<5>;
		for (size_t i = 0; i < 3; i++)
			mapping[i] = (char *)new Held<6> + 8;
	});
	say("done\n");
}

/* -- a cache whose thread a fork does not copy -- */

static pthread_barrier_t is_filled;

static void *fill_cache(void *)
{
	void *block[7];

	for (void *&p : block)
		p = filled(712, 1);
	for (void *p : block)
		free(p);
	pthread_barrier_wait(&is_filled);
	for (;;)
		pause();
	return nullptr;
}

static void fork_it()
{
	pthread_t thread;

	pthread_barrier_init(&is_filled, nullptr, 2);
	pthread_create(&thread, nullptr, fill_cache, nullptr);
	pthread_barrier_wait(&is_filled);
	pid_t parent = getpid(), child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (getppid() == parent)
			pause();
		_exit(0);
	}
	say_kind("child", (size_t)child, 0);
	say("done\n");
}

static void resize_mapped()
{
	for (size_t i = 0; i < 6; i++) {
		size_t first = i % 2 ? 5000000 : 300000, then = i % 2 ? 250000 : 3000000;
		void *p = nullptr;

		if (posix_memalign(&p, (size_t)8192 << 2 * i, first) != 0)
			_exit(1);
		memset(p, 1, first);
		p = realloc(p, then);
		memset(p, 1, then);
		held[held_count++] = p;
		snprintf(line, sizeof(line), "%#zx\t1\t%zu\n", (size_t)(uintptr_t)p, malloc_usable_size(p));
		say(line);
	}
	say("done\n");
}

int main()
{
	Held<2> *volatile in_stack[5] = {};
	char letter;

	say("ready\n");
	while (read(STDIN_FILENO, &letter, 1) == 1 && letter != 'q') {
		if (letter == 'a')
			make_all();
		else if (letter == 'p')
			pin();
		else if (letter == 'h')
			lie();
		else if (letter == 'm')
			resize_mapped();
		else if (letter == 'f')
			fork_it();
		else if (letter == 'w')
			hold((Held<2> **)in_stack);
	}
	_exit(0);
}
