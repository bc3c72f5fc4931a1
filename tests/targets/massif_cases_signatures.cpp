/*
 * massif_cases_signatures: as massif_cases_cxx.cpp, functions whose names are the test: templates (with the type that they return in
 * their names), members, conversions, ABI tags, thunks, inline namespaces, packs, functions as parameters.
 */
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#define NOINLINE __attribute__((noinline))
#define NO_TAIL_CALL() __asm__ volatile("" ::: "memory")
#define MALLOC(n) \
	void *p = malloc(n); \
	NO_TAIL_CALL(); \
	return p

namespace outer
{
template <class T> NOINLINE T *make(size_t n)
{
	T *p = (T *)malloc(n);
	NO_TAIL_CALL();
	return p;
}

struct maker {
	void *held;
	NOINLINE explicit maker(size_t n) : held(malloc(n)) { NO_TAIL_CALL(); }
	NOINLINE ~maker() { free(held); NO_TAIL_CALL(); }
	NOINLINE void *operator()(size_t n) const { MALLOC(n); }
	NOINLINE static void *fixed(size_t n) { void *p = ::operator new(n); NO_TAIL_CALL(); return p; }
	NOINLINE operator int *() const { int *p = (int *)malloc(160); NO_TAIL_CALL(); return p; }
};

inline namespace v1
{
NOINLINE void *versioned(size_t n) { MALLOC(n); }
}
}

extern "C" NOINLINE void *plain_c(size_t n) { MALLOC(n); }
static NOINLINE void *variadic(const char *, ...) { MALLOC(192); }
template <class... A> NOINLINE void *pack(A... a) { MALLOC(sizeof...(a) * 32); }
template <auto F> NOINLINE void *by_function() { void *p = F(224); NO_TAIL_CALL(); return p; }
struct [[gnu::abi_tag("tagged")]] tag { int x; };
NOINLINE tag *tagged(tag *) { tag *p = (tag *)malloc(256); NO_TAIL_CALL(); return p; }

struct first { long a = 0; virtual ~first() {} virtual void f() {} };
struct second { virtual void *grab(size_t n) { MALLOC(n); } virtual ~second() {} };
struct both : first, second { NOINLINE void *grab(size_t n) override { MALLOC(n); } };
NOINLINE static void *through_thunk(second *s) { void *p = s->grab(288); NO_TAIL_CALL(); return p; }

NOINLINE static void *call(void *(*f)(size_t), const std::function<void *(size_t)> &g)
{
	void *p = f(320);
	free(g(352));
	return p;
}

int main()
{
	both b;
	outer::maker m(96);
	void *p[] = {
		outer::make<std::vector<int>>(32), outer::make<char *>(64), m(128), outer::maker::fixed(96), (int *)m,
		outer::versioned(96), plain_c(96), variadic("x"), pack(1, 'c', 2.0, (const std::string *)nullptr),
		by_function<&malloc>(), by_function<&plain_c>(), tagged(nullptr), through_thunk(&b),
		call([](size_t n) NOINLINE { MALLOC(n); }, [&](size_t n) { (void)b; MALLOC(n); }),
	};
	auto generic = [](auto x) NOINLINE { MALLOC(sizeof(x) * 32); };
	free(generic(1));
	free(generic(1.0));
	for (size_t i = 0; i < sizeof(p) / sizeof(p[0]); i++)
		i == 3 ? ::operator delete(p[i]) : free(p[i]);
}
