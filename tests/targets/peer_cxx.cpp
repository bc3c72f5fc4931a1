/*
 * peer_cxx: as peer.c for C++: templates, namespaces, lambdas, inlined functions and containers whose
 * nodes are multiples of 32 bytes.
 */
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "truth.h"

namespace shapes
{
struct wide {
	long data[4];
	explicit wide(long n)
	{
		data[0] = data[1] = data[2] = data[3] = n;
	}
	bool operator<(const wide &other) const
	{
		return data[0] < other.data[0];
	}
};

template <class T, int N> struct maker {
	NOINLINE static T *make(long n)
	{
		T *t = new T(n);
		NO_TAIL_CALL();
		return t;
	}
	static inline T *make_inline(long n)
	{
		return new T(n + N);
	}
};

static inline char *bytes(size_t n)
{
	return new char[32 * n];
}

struct base {
	long pad[3];
	virtual ~base()
	{
	}
	virtual char *grow(size_t n) const = 0;
};

struct derived : base {
	NOINLINE char *grow(size_t n) const override
	{
		char *p = bytes(n);
		NO_TAIL_CALL();
		return p;
	}
};
} // namespace shapes

using shapes::maker;
using shapes::wide;

NOINLINE static void containers(int n)
{
	std::vector<wide> v;
	std::list<std::pair<long, long>> l;
	std::map<long, std::pair<long, std::pair<long, long>>> m;

	for (int i = 0; i < n; i++) {
		v.push_back(wide(i));
		l.emplace_back(i, i);
		m[i * 7 % 50].first = i;
		if (i % 4 == 3)
			l.pop_front();
	}
}

int main()
{
	std::vector<wide *> kept(64);
	std::unique_ptr<shapes::base> shape(new shapes::derived);
	auto by_lambda = [](size_t n) NOINLINE {
		char *p = new char[32 * n];
		NO_TAIL_CALL();
		return p;
	};

	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < 64; i++) {
			delete kept[i];
			kept[i] = i % 3 ? maker<wide, 3>::make(static_cast<long>(i)) :
					  maker<wide, 9>::make_inline(static_cast<long>(i));
		}
		containers(10 * round);
		delete[] by_lambda(static_cast<size_t>(round) + 1);
		delete[] shape->grow(static_cast<size_t>(round) + 5);
	}
	for (wide *w : kept)
		delete w;
}
