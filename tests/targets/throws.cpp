/*
 * throws: operators new that throw, in all ways: what is allocated for an exception is an event of its own, and
 * the call that it leaves has failed.
 *
 *	throws [longjmp]
 */
#include <csetjmp>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "truth.h"

#define ROUNDS 10

static volatile size_t huge = SIZE_MAX / 2;
static void *volatile sink;
static int calls;
static char *reserve;
static jmp_buf out;

/* The compiler must not remove a pair of new and delete. */
NOINLINE static void *make(size_t size)
{
	return sink = operator new(size);
}

NOINLINE static void *make_array(size_t size)
{
	return sink = new char[size];
}

NOINLINE static void *make_or_null(size_t size)
{
	return sink = operator new(size, std::nothrow);
}

struct guard {
	size_t size;
	~guard()
	{
		operator delete(make(size));
	}
};

/* Its destructor handles an exception of its own while another one is in flight. */
struct thrower {
	~thrower()
	{
		try {
			make(huge);
		} catch (const std::bad_alloc &) {
			operator delete(make(33));
		}
	}
};

template <typename F> NOINLINE static void expect_throw(F f)
{
	bool was_caught = false;
	try {
		f();
	} catch (const std::exception &) {
		was_caught = true;
	}
	CHECK(was_caught);
}

static void plain()
{
	expect_throw([] { make(huge); });
	expect_throw([] { make_array(huge); });
	expect_throw([] { sink = operator new(huge, std::align_val_t(64)); });
	CHECK(!make_or_null(huge));
	operator delete(make(10));
	operator delete[](make_array(20));
	operator delete(make_or_null(30));
}

/* While the exception is in flight, destructors allocate. */
static void with_destructors()
{
	expect_throw([] {
		guard a{100};
		make(huge);
	});
	expect_throw([] {
		guard a{50};
		thrower b;
		guard c{60};
		make(huge);
	});
}

static void rethrown()
{
	expect_throw([] {
		try {
			make(huge);
		} catch (const std::bad_alloc &) {
			operator delete(make(70));
			throw;
		}
	});
	std::exception_ptr kept;
	try {
		make(huge);
	} catch (...) {
		kept = std::current_exception();
	}
	operator delete(make(80));
	expect_throw([&] { std::rethrow_exception(kept); });
}

/* An exception with a string, thrown by a handler: its memory lives as long as it does. */
static void handler_that_throws()
{
	std::string text(200, 'x');
	std::string *message = new std::string(text);
	throw std::runtime_error(*message);
}

static void handler_that_frees()
{
	if (!reserve)
		throw std::bad_alloc();
	free(reserve);
	reserve = nullptr;
}

/* Throws and catches inside operator new. */
static void handler_that_catches()
{
	if (++calls % 3 == 0)
		throw std::bad_alloc();
	try {
		throw std::runtime_error("inside");
	} catch (const std::runtime_error &) {
	}
}

static void handler_that_jumps()
{
	longjmp(out, 1);
}

static void by_handler(std::new_handler handler)
{
	std::set_new_handler(handler);
	if (handler == handler_that_frees)
		reserve = static_cast<char *>(malloc(5000));
	expect_throw([] { make(huge); });
	operator delete(make(90));
	if (handler == handler_that_frees)
		reserve = static_cast<char *>(malloc(5000));
	if (handler != handler_that_throws)
		CHECK(!make_or_null(huge));
	operator delete(make(91));
	std::set_new_handler(nullptr);
}

static void by_longjmp()
{
	std::set_new_handler(handler_that_jumps);
	if (setjmp(out) == 0)
		make(huge);
	std::set_new_handler(nullptr);
	operator delete(make(92));
	expect_throw([] { make(huge); });
}

int main(int argc, char **)
{
	for (int i = 0; i < ROUNDS; i++) {
		plain();
		with_destructors();
		rethrown();
		by_handler(handler_that_throws);
		by_handler(handler_that_frees);
		by_handler(handler_that_catches);
		if (argc > 1)
			by_longjmp();
	}
	sink = malloc(77);
	print_ok();
}
