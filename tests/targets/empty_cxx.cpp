/* empty_cxx: allocates nothing; what is seen is the C++ runtime's own. */
#include <string>

#include "truth.h"

int main()
{
	std::string s("short");

	CHECK(s.size() == 5);
	truth_report();
}
