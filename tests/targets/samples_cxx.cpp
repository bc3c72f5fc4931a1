/* As samples.c, by operator new: it calls malloc, and its bytes must not be counted twice. */
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

struct node {
	char data[48];
};

static void mark()
{
	char *volatile p = new char[1 << 20];
	delete[] p;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 1;
	static node *nodes[1500];
	static char *texts[700];

	for (int round = 0; round < rounds; round++) {
		for (auto &n : nodes)
			n = new node;
		for (auto &t : texts)
			t = new char[133];
		mark();
		if (round + 1 == rounds)
			break;
		for (auto &n : nodes)
			delete n;
		for (auto &t : texts)
			delete[] t;
	}
	printf("truth 48 1500\ntruth 133 700\n");
}
