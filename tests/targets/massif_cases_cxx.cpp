/*
 * CASE=NAME massif_cases_cxx: as massif_cases.c, in C++: operators new of all kinds, overloaded ones, templates,
 * lambdas, long names.
 */
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "truth.h"

namespace
{
struct tiny {
	long data[12];
};

struct overloaded {
	long data[12];
	NOINLINE static void *operator new(std::size_t n)
	{
		void *p = malloc(n);
		NO_TAIL_CALL();
		return p;
	}
	NOINLINE static void operator delete(void *p)
	{
		free(p);
		NO_TAIL_CALL();
	}
	NOINLINE static void *operator new[](std::size_t n, std::align_val_t)
	{
		void *p = malloc(n);
		NO_TAIL_CALL();
		return p;
	}
	NOINLINE static void operator delete[](void *p, std::align_val_t)
	{
		free(p);
		NO_TAIL_CALL();
	}
};

void plain_new()
{
	tiny *one = new tiny, *many = new tiny[8];
	char *none = new char[0];

	delete one;
	delete[] many;
	delete[] none;
}

void nothrow_new()
{
	tiny *one = new (std::nothrow) tiny, *many = new (std::nothrow) tiny[8];

	delete one;
	delete[] many;
}

void aligned_new()
{
	void *one = ::operator new(96, std::align_val_t(16)), *many = ::operator new[](160, std::align_val_t(8));
	void *third = ::operator new(224, std::align_val_t(16), std::nothrow);

	::operator delete(one, std::align_val_t(16));
	::operator delete[](many, std::align_val_t(8));
	::operator delete(third, std::align_val_t(16), std::nothrow);
}

void overload()
{
	overloaded *one = new overloaded;
	overloaded *many = new (std::align_val_t(16)) overloaded[5];

	delete one;
	overloaded::operator delete[](many, std::align_val_t(16));
}

template <int N> struct nest {
	NOINLINE static void *make(std::size_t n)
	{
		void *p = nest<N - 1>::make(n);
		NO_TAIL_CALL();
		return p;
	}
};
template <> struct nest<0> {
	NOINLINE static void *make(std::size_t n)
	{
		void *p = ::operator new(n);
		NO_TAIL_CALL();
		return p;
	}
};

void templates()
{
	void *p[3] = {nest<2>::make(96), nest<9>::make(160), nest<40>::make(224)};

	for (void *q : p)
		::operator delete(q);
}

/* A type whose name doubles with each level. */
template <int N> struct longer {
	using type = std::pair<typename longer<N - 1>::type, typename longer<N - 1>::type>;
};
template <> struct longer<0> {
	using type = long long unsigned;
};
template <class T> NOINLINE void *make_long(std::size_t n, T *)
{
	void *p = ::operator new(n);
	NO_TAIL_CALL();
	return p;
}

void long_names()
{
	void *p = make_long<longer<7>::type>(96, nullptr);

	::operator delete(p);
}

void lambdas()
{
	auto make = [](std::size_t n) NOINLINE {
		void *p = ::operator new(n);
		NO_TAIL_CALL();
		return p;
	};
	auto generic = [&make](auto n) NOINLINE {
		void *p = make(static_cast<std::size_t>(n) * 32);
		NO_TAIL_CALL();
		return p;
	};

	void *p = make(96), *q = generic(3), *r = generic(5l);
	::operator delete(p);
	::operator delete(q);
	::operator delete(r);
}

NOINLINE void *named(int n)
{
	void *p = ::operator new(static_cast<std::size_t>(n));
	NO_TAIL_CALL();
	return p;
}

extern "C" NOINLINE void *plain_named(int n)
{
	void *p = ::operator new(static_cast<std::size_t>(n));
	NO_TAIL_CALL();
	return p;
}

#ifdef NO_INLINING
#define MAYBE_INLINED NOINLINE
#else
#define MAYBE_INLINED inline __attribute__((always_inline))
#endif

static MAYBE_INLINED void *maybe_inlined(int n)
{
	void *p = ::operator new(static_cast<std::size_t>(n));
	NO_TAIL_CALL();
	return p;
}

void names()
{
	void *p[3] = {named(96), plain_named(160), maybe_inlined(224)};

	for (void *q : p)
		::operator delete(q);
}

void containers()
{
	std::map<int, std::string> words;
	std::vector<std::string> list;

	for (int i = 0; i < 32; i++) {
		words[i] = std::string(95, 'x');
		list.push_back(words[i]);
	}
}
} // namespace

int main()
{
	static const struct {
		const char *name;
		void (*run)();
	} cases[] = {
		{"plain_new", plain_new}, {"nothrow_new", nothrow_new}, {"aligned_new", aligned_new},
		{"overload", overload}, {"templates", templates}, {"long_names", long_names},
		{"lambdas", lambdas}, {"names", names}, {"containers", containers},
	};

	const char *wanted = getenv("CASE");

	for (const auto &c : cases) {
		if (wanted && !strcmp(wanted, c.name)) {
			c.run();
			return 0;
		}
	}
	return 1;
}
