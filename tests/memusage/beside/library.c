/* a library opened and closed: the loader's allocations count as well */
#include <dlfcn.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 3; i++) {
		void *m = dlopen("libm.so.6", RTLD_NOW);
		free(malloc(i));
		if (m)
			dlclose(m);
	}
	return 0;
}
