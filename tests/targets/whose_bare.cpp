/*
 * The program's code inlined into templates of the standard library, compiled without debug
 * information. Each place has a size of its own.
 */
#include <cstdlib>
#include <functional>
#include <future>
#include <thread>
#include <vector>

void *volatile kept[4];
std::vector<std::vector<char>> *grown = new std::vector<std::vector<char>>;

struct functor {
	void operator()() const
	{
		kept[2] = malloc(300007);
	}
};

int main()
{
	std::thread lambda([] { kept[0] = malloc(100003); });

	lambda.join();
	std::async(std::launch::async, [] { kept[1] = malloc(200003); }).get();
	std::thread object{functor()};

	object.join();
	std::thread grows([] { grown->resize(20011); });

	grows.join();
	return 0;
}
