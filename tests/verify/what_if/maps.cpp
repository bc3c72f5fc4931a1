/* C++ maps, strings and lists, of which one in eight stays. For scripts/what_if_table. */
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

static unsigned state = 1;

static unsigned next_random()
{
	state = state * 1664525u + 1013904223u;
	return state >> 8;
}

int main()
{
	std::map<int, std::string> names;
	std::unordered_map<std::string, std::vector<int>> groups;
	std::list<std::string> recent;

	for (int i = 0; i < 150000; i++) {
		names[(int)(next_random() % 200000)] = std::string(next_random() % 80, 'x');
		groups["key" + std::to_string(next_random() % 20000)].push_back(i);
		if (i % 3 == 0)
			recent.push_back(std::string(40, 'y'));
		if (i % 5 == 0)
			names.erase(names.begin());
		if (recent.size() > 20000)
			recent.pop_front();
	}
	for (auto it = names.begin(); it != names.end();)
		it = it->first % 8 ? names.erase(it) : std::next(it);
	groups.clear();
	return names.size() == 1;
}
