// // For make bench: a file that keeps a C++ compiler busy (regex, maps, templates).
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct record {
	std::map<std::string, std::vector<std::variant<int, double, std::string>>> fields;
	std::unordered_map<int, std::shared_ptr<record<N - 1>>> parts;
	std::regex pattern{"([a-z]+)=([0-9]+)(,|$)"};

	int parse(const std::string &text)
	{
		int found = 0;
		for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it, ++found)
			fields[(*it)[1]].emplace_back(std::stoi((*it)[2]) + N);
		std::function<void(int)> add = [this](int i) { parts[i] = std::make_shared<record<N - 1>>(); };
		for (int i = 0; i < found; i++)
			add(i);
		for (auto &[i, part] : parts)
			found += part->parse(text);
		for (auto &[name, values] : fields)
			std::sort(values.begin(), values.end());
		return found;
	}
};

template <> struct record<0> {
	int parse(const std::string &text) { return static_cast<int>(text.size()); }
};

int main()
{
	record<12> r;
	std::cout << r.parse("a=1,bc=22,def=333") << '\n';
}
