/*
 * names_cxx: allocations in functions that are inlined, whose names a report has to qualify: members of
 * class templates, operators, constructors, lambdas, classes local to functions, namespaces with and without a name.
 */
#include <map>
#include <string>
#include <vector>
#include <functional>
#include <cstdlib>
static void *volatile keep;
namespace {
struct Table {
	std::map<std::string, std::vector<int>> m;
	Table() { for (int i = 0; i < 50; i++) m["a long enough key that is on the heap " + std::to_string(i)].push_back(i); }
	void grow(int n) { m["x"].resize(n); }
};
static inline void *local_static(int n) { return malloc(n); }
}
namespace app { namespace v1 {
template <class T, int N> struct Pool {
	struct Node { T t; Node *next; };
	inline Node *make() { Node *n = static_cast<Node *>(malloc(sizeof(Node) * N)); return n; }
	void *operator()(int n) { return new char[n]; }
	T *operator->() { return new T[3]; }
};
inline namespace abi { static inline void *helper(int n) { return calloc(n, 3); } }
} }
__attribute__((noinline)) static void fill(std::vector<std::string> &v) {
	for (int i = 0; i < 40; i++) v.push_back(std::string(40 + i, 'x'));
}
int main()
{
	Table t; t.grow(1000);
	std::vector<std::string> v; fill(v);
	auto lambda = [&](int n) { struct Inner { static void *in(int k) { return malloc(k); } }; keep = Inner::in(n); return (char *)malloc(n); };
	keep = lambda(77);
	app::v1::Pool<std::map<int, std::string>, 3> p;
	keep = p.make(); keep = p(99); keep = p.operator->();
	keep = app::v1::helper(5); keep = local_static(44);
	std::function<void *(int)> f = [](int n) { return new long[n]; };
	keep = f(9);
	return 0;
}
