/*
 * long_names: call sites whose names are longer than any column, below each other: templates of
 * templates with parameters. Prints "site FUNCTION FILE:LINE BYTES".
 */
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "noinline.h"

namespace forest_of_large_trees {

using table = std::map<std::string, std::vector<std::pair<std::string, unsigned long>>>;

static void *volatile kept[4];
static void *volatile lost;

template <class Key, class Value> struct node_of_a_tree_with_many_parameters {
	NOINLINE static void *make_tree(const table &, const std::vector<std::string> &, std::pair<Key, Value>)
	{
		return kept[0] = malloc(300000);
	}
	static const int tree_line = __LINE__ - 2;
};

template <class T> NOINLINE void grow_branches(const T &, const std::map<std::string, table> &)
{
	kept[1] = malloc(200000);
}
static const int branch_line = __LINE__ - 2;

NOINLINE static void lose_leaves(const table &, const std::vector<std::map<std::string, table>> &)
{
	lost = malloc(100000);
	lost = nullptr;
}
static const int leaf_line = __LINE__ - 3;

} // namespace forest_of_large_trees

using namespace forest_of_large_trees;

int main()
{
	using tree = node_of_a_tree_with_many_parameters<std::map<std::string, table>, std::vector<table>>;

	tree::make_tree({}, {}, {});
	grow_branches(std::vector<std::pair<table, table>>(), {});
	lose_leaves({}, {});
	printf("site make_tree long_names.cpp:%d 300000\n", tree::tree_line);
	printf("site grow_branches long_names.cpp:%d 200000\n", branch_line);
	printf("site lose_leaves long_names.cpp:%d 100000\n", leaf_line);
	return 0;
}
