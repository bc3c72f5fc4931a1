/* A library that holds a pointer in its .bss; see leaks.c. */
void *held;
