/* empty [-w]: allocates nothing; all events are the C library's own. -w: says that main was reached
 * and waits for a byte, so that what comes before can be distinguished from what comes after. */
#include "truth.h"

int main(int argc, char **argv)
{
	char byte;

	(void)argv;
	if (argc > 1 && (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) < 0))
		return 1;
	truth_report();
	return 0;
}
