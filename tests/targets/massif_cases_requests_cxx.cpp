/* Client requests from C++: an allocator for containers, a class with operators of its own, a constructor. */
#include <cstddef>
#include <new>
#include <vector>

#include <valgrind/valgrind.h>

namespace {

alignas(16) char area[1 << 20];
std::size_t used;

template <typename T>
struct arena_allocator {
	using value_type = T;

	arena_allocator() = default;
	template <typename U>
	arena_allocator(const arena_allocator<U> &)
	{
	}

	T *allocate(std::size_t n)
	{
		char *p = area + used;

		used += (n * sizeof(T) + 15) & ~std::size_t(15);
		VALGRIND_MALLOCLIKE_BLOCK(p, n * sizeof(T), 0, 0);
		return reinterpret_cast<T *>(p);
	}

	void deallocate(T *p, std::size_t)
	{
		VALGRIND_FREELIKE_BLOCK(p, 0);
	}
};

template <typename T, typename U>
bool operator==(const arena_allocator<T> &, const arena_allocator<U> &)
{
	return true;
}

template <typename T, typename U>
bool operator!=(const arena_allocator<T> &, const arena_allocator<U> &)
{
	return false;
}

struct node {
	long value;
	node *next;

	static void *operator new(std::size_t size) { return arena_allocator<char>().allocate(size); }
	static void operator delete(void *p) { VALGRIND_FREELIKE_BLOCK(p, 0); }
};

#ifndef __clang__ /* its code around the constructor is of line 0: peer_differences.md */
struct global {
	global() { VALGRIND_MALLOCLIKE_BLOCK(area + (1 << 19), 123, 0, 0); }
} before_main;
#endif

} // namespace

int main()
{
	std::vector<int, arena_allocator<int>> numbers;
	node *head = nullptr;

	for (int i = 0; i < 100; i++)
		numbers.push_back(i);
	for (long i = 0; i < 20; i++)
		head = new node{i, head};
	while (head) {
		node *next = head->next;

		delete head;
		head = next;
	}
	int *plain = new int[100];
	VALGRIND_MALLOCLIKE_BLOCK(plain, 40, 0, 0);
	VALGRIND_FREELIKE_BLOCK(plain, 0);
	delete[] plain;
	return numbers[3] - 3;
}
