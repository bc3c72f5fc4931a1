// exceptions have blocks of their own
#include <stdexcept>
#include <string>
static int thrown(int n)
{
	try {
		if (n % 3)
			throw std::runtime_error(std::string(n, 'e'));
		return 0;
	} catch (const std::exception &e) {
		return 1;
	}
}
int main()
{
	int n = 0;
	for (int i = 0; i < 200; i++)
		n += thrown(i);
	return n == 133 ? 0 : 1;
}
