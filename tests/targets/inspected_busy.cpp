/*
 * Threads that allocate all the time, and pass blocks to each other, until
 * they are killed, or for twenty minutes.
 */
#include <atomic>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>
#include <unistd.h>

#define THREADS 8

static std::atomic<void *> mailbox[256];

static void work(unsigned id)
{
	std::mt19937 random(id);
	std::map<unsigned, std::string> texts;
	std::vector<void *> aligned;

	for (;;) {
		texts[random() % 2000] = std::string(random() % 3000, 'x');
		texts.erase(random() % 2000);
		free(mailbox[random() % 256].exchange(malloc(random() % (random() % 50 ? 500 : 400000))));
		void *block;
		if (random() % 100 == 0 && posix_memalign(&block, 64u << random() % 10, random() % 100000) == 0)
			aligned.push_back(block);
		if (aligned.size() > 50) {
			for (void *p : aligned)
				free(p);
			aligned.clear();
		}
		if (random() % 64 == 0)
			std::thread([] { free(mailbox[1].exchange(malloc(100))); }).join();
		volatile unsigned sum = 0;
		for (unsigned i = 0; i < 3000; i++)
			sum = sum + i;
	}
}

int main()
{
	std::vector<std::thread> threads;

	alarm(1200);
	for (unsigned i = 0; i < THREADS; i++)
		threads.emplace_back(work, i);
	threads[0].join();
}
