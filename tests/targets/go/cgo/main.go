// Allocates by C on four goroutines, at known depths of Go calls, and also from Go that C calls. Prints, for each path, the
// functions of its own, outermost first, and the bytes that it allocates and keeps.
package main

/*
#include <stdlib.h>

extern void goAgain(int n);

static void take(int n)
{
	static __thread void *volatile keep;

	keep = malloc(n);
}

static void again(int n)
{
	goAgain(n);
	take(n); // not the last call
}
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
)

const times = 300

//go:noinline
func leaf(n int) {
	C.take(C.int(n))
	runtime.KeepAlive(&n)
}

//go:noinline
func deep(depth, n int) {
	if depth > 0 {
		deep(depth-1, n)
	} else {
		leaf(n)
	}
	runtime.KeepAlive(&n)
}

//go:noinline
func callback(n int) {
	C.again(C.int(n))
	runtime.KeepAlive(&n)
}

// A frame larger than a stack's first size: it is moved.
//
//go:noinline
func grown(n int) {
	var words [4000]int
	deep(1, n)
	runtime.KeepAlive(&words)
}

//go:noinline
func one(n int) { deep(2, n); runtime.KeepAlive(&n) }

//go:noinline
func two(n int) { deep(7, n); runtime.KeepAlive(&n) }

//go:noinline
func three(n int) { callback(n); runtime.KeepAlive(&n) }

//go:noinline
func four(n int) { grown(n); runtime.KeepAlive(&n) }

//go:noinline
func run(f func(int), n int, wg *sync.WaitGroup) {
	for i := 0; i < times; i++ {
		f(n)
		if i%16 == 0 {
			runtime.Gosched()
		}
	}
	wg.Done()
}

func expect(bytes int, path ...string) {
	fmt.Println("main."+strings.Join(path, " main."), bytes*times)
}

func main() {
	var wg sync.WaitGroup
	wg.Add(4)
	for i, f := range []func(int){one, two, three, four} {
		go run(f, 10000+i, &wg)
	}
	wg.Wait()
	d := strings.Split("deep deep deep deep deep deep deep deep", " ")
	c := "_Cfunc_take"
	expect(10000, append(append([]string{"run", "one"}, d[:3]...), "leaf", c)...)
	expect(10001, append(append([]string{"run", "two"}, d[:8]...), "leaf", c)...)
	expect(10002, "run", "three", "callback", "_Cfunc_again")
	expect(10002, "run", "three", "callback", "_Cfunc_again", "goAgain", c)
	expect(10003, append(append([]string{"run", "four", "grown"}, d[:2]...), "leaf", c)...)
}
