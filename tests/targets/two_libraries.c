/* Loads libraries of Python, and runs a script in each: two_libraries LIBRARY SCRIPT LIBRARY SCRIPT */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		void *library = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);

		if (!library) {
			fprintf(stderr, "%s\n", dlerror());
			return 1;
		}
		((void (*)(int))dlsym(library, "Py_InitializeEx"))(0);
		if (((int (*)(const char *))dlsym(library, "PyRun_SimpleString"))(argv[i + 1]))
			return 1;
	}
	return 0;
}
