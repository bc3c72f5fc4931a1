package main

/*
#include <stdlib.h>

static void take(int n)
{
	static __thread void *volatile keep;

	keep = malloc(n);
}
*/
import "C"

//export goAgain
func goAgain(n C.int) { C.take(n) }
