/*
 * cxx: new and delete in all their forms, exceptions thrown while allocating and by operator new,
 * new-handlers. The sizes are those that the operators were called with. Exception
 * objects are the C++ runtime's and not counted here.
 */
#include <new>
#include <stdexcept>

#include "truth.h"

struct sized {
	unsigned char data[100];
};

struct alignas(64) wide {
	unsigned char data[192];
};

struct with_destructor {
	int *p;
	with_destructor();
	~with_destructor();
};

static volatile bool must_throw;

NOINLINE static void note_made(void *p, uint64_t size)
{
	truth_made(p, size);
}

with_destructor::with_destructor()
{
	/* The compiler must not remove an unused object. */
	__asm__ volatile("" : : "r"(this) : "memory");
	p = new int;
	note_made(p, sizeof(int));
	if (must_throw)
		throw 5;
}

with_destructor::~with_destructor()
{
	truth_gone(sizeof(int));
	delete p;
}

NOINLINE static void plain(void)
{
	sized *s = new sized;
	truth_made(s, sizeof(*s));
	truth_gone(sizeof(*s));
	delete s;

	char *array = new char[333];
	truth_made(array, 333);
	truth_gone(333);
	delete[] array;

	s = new (std::nothrow) sized;
	truth_made(s, sizeof(*s));
	truth_gone(sizeof(*s));
	operator delete(s, std::nothrow);

	array = new (std::nothrow) char[44];
	truth_made(array, 44);
	truth_gone(44);
	operator delete[](array, std::nothrow);

	void *raw = operator new(0);
	truth_made(raw, 0);
	truth_gone(0);
	operator delete(raw);

	raw = operator new(123);
	truth_made(raw, 123);
	truth_gone(123);
	operator delete(raw, (size_t)123);
	delete (sized *)nullptr;
}

NOINLINE static void aligned(void)
{
	wide *w = new wide;
	truth_made(w, sizeof(*w));
	CHECK((uintptr_t)w % 64 == 0);
	truth_gone(sizeof(*w));
	delete w;

	wide *five = new wide[5];
	truth_made(five, 5 * sizeof(*five));
	truth_gone(5 * sizeof(*five));
	delete[] five;

	void *raw = operator new(100, std::align_val_t(256)); /* the library rounds up, we do not */
	truth_made(raw, 100);
	truth_gone(100);
	operator delete(raw, std::align_val_t(256));

	raw = operator new[](70, std::align_val_t(32), std::nothrow);
	truth_made(raw, 70);
	truth_gone(70);
	operator delete[](raw, (size_t)70, std::align_val_t(32));
}

/* An array of objects with destructors carries a count of 8 bytes before it. */
NOINLINE static void arrays(void)
{
	with_destructor *a = new with_destructor[10];
	truth_made((char *)a - 8, 8 + 10 * sizeof(*a));
	truth_gone(8 + 10 * sizeof(*a));
	delete[] a;
}

/* The constructor throws: the int stays, the object's memory is freed by the compiler's code. */
NOINLINE static void throwing_constructor(void)
{
	must_throw = true;
	try {
		/* The address of the object itself is not used: it is created and destroyed. */
		truth_made((void *)1, sizeof(with_destructor));
		with_destructor *w = new with_destructor;
		CHECK(!w);
	} catch (int) {
		truth_gone(sizeof(with_destructor));
	}
	must_throw = false;
}

static volatile size_t huge = (size_t)1 << 62;

/* A throwing operator new gave no memory: it is a failed call, though it never returned. */
NOINLINE static void out_of_memory(void)
{
	bool caught = false;

	CHECK(!operator new(huge, std::nothrow));
	CHECK(!operator new[](huge, std::nothrow));
	truth.failed += 2;
	try {
		void *p = operator new(huge);
		CHECK(!p);
	} catch (const std::bad_alloc &) {
		caught = true;
		truth.failed++;
	}
	CHECK(caught);
}

struct given_up {
};

static int handler_calls;

static void handler(void)
{
	if (++handler_calls % 3 == 0)
		throw given_up();
}

/* The new-handler is called twice, then throws something through operator new. */
NOINLINE static void through_handler(void)
{
	bool caught = false;

	std::set_new_handler(handler);
	try {
		void *p = operator new[](huge);
		CHECK(!p);
	} catch (const std::bad_alloc &) {
		CHECK(!"bad_alloc");
	} catch (const given_up &) {
		caught = true;
		truth.failed++;
	}
	std::set_new_handler(nullptr);
	CHECK(caught && handler_calls % 3 == 0);
}

NOINLINE static void unwind_from(int depth)
{
	char *p = (char *)t_malloc(64);

	try {
		if (!depth)
			throw std::runtime_error("from below");
		unwind_from(depth - 1);
	} catch (...) {
		t_free(p, 64);
		throw;
	}
}

int main()
{
	for (int i = 0; i < 20; i++) {
		plain();
		aligned();
		arrays();
	}
	for (int i = 0; i < 20; i++) {
		throwing_constructor();
		out_of_memory();
		through_handler();
		try {
			unwind_from(10);
		} catch (const std::runtime_error &) {
		}
	}
	truth_report();
	print_ok();
}
