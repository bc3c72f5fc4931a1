// strings, vectors, maps: operator new and delete are malloc and free below
#include <map>
#include <string>
#include <vector>
int main()
{
	std::map<int, std::string> names;
	std::vector<std::vector<int>> rows;
	for (int i = 0; i < 500; i++) {
		names[i * 37 % 101] = std::string(i % 90, 'x');
		rows.emplace_back(i % 50, i);
	}
	int *volatile array = new int[100];
	delete[] array;
	int *volatile none = nullptr;
	delete none;
	return (int)(names.size() + rows.size()) & 1;
}
