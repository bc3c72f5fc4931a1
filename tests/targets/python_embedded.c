/* A program that loads Python's library, argv[1], while it runs, and passes it its other arguments. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	int (*run)(int, char **) = NULL;

	if (library)
		*(void **)&run = dlsym(library, "Py_BytesMain");
	if (!run) {
		fprintf(stderr, "python_embedded: %s\n", argc > 1 ? dlerror() : "no library");
		return 1;
	}
	return run(argc - 1, argv + 1);
}
