/*
 * cxx_containers: the standard containers with an allocator that counts; std::string and
 * streams besides, which only the oracle checks.
 */
#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

#include "truth.h"

template <class T> struct counting {
	typedef T value_type;
	counting()
	{
	}
	template <class U> counting(const counting<U> &)
	{
	}
	T *allocate(size_t n)
	{
		T *p = static_cast<T *>(operator new(n * sizeof(T)));
		truth_made(p, n * sizeof(T));
		return p;
	}
	void deallocate(T *p, size_t n)
	{
		truth_gone(n * sizeof(T));
		operator delete(p);
	}
	template <class U> bool operator==(const counting<U> &) const
	{
		return true;
	}
	template <class U> bool operator!=(const counting<U> &) const
	{
		return false;
	}
};

static void counted(void)
{
	std::vector<int, counting<int>> v;
	std::map<int, int, std::less<int>, counting<std::pair<const int, int>>> m;
	std::list<long, counting<long>> l;
	std::deque<int, counting<int>> d;
	std::unordered_map<int, int, std::hash<int>, std::equal_to<int>, counting<std::pair<const int, int>>> u;

	for (int i = 0; i < 300; i++) {
		v.push_back(i);
		m[i * 7 % 100] = i;
		l.push_front(i);
		d.push_back(i);
		u[i] = i;
		if (i % 3 == 0)
			l.pop_back();
		if (i % 50 == 0) {
			v.shrink_to_fit();
			u.erase(i / 2);
		}
	}
	std::sort(v.begin(), v.end(), std::greater<int>());
	CHECK(v[0] == 299 && m.size() == 100 && l.size() == 200);
}

static void uncounted(void)
{
	std::ostringstream out;
	std::vector<std::shared_ptr<std::string>> strings;

	for (int i = 0; i < 100; i++) {
		out << "line " << i << '\n';
		strings.push_back(std::make_shared<std::string>(static_cast<size_t>(i), 'x'));
	}
	CHECK(out.str().size() > 500);
}

int main(int argc, char **argv)
{
	counted();
	if (argc > 1 && argv[1][0] == 'a')
		uncounted();
	truth_report();
	print_ok();
}
