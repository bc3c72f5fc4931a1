/* empty: allocates nothing; what is seen is the C library's own. */
#include "truth.h"

int main(void)
{
	truth_report();
	return 0;
}
