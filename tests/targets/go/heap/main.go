// Allocates, collects (unless a third argument says not to), writes its own heap profile to the file that the first argument
// names, and waits for SIGTERM. The second one is the rate of samples, 0 = as it is.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/pprof"
	"syscall"
)

type node struct {
	next *node
	data [1000]byte
}

var keep []*node
var texts []string
var slices [][]int

//go:noinline
func addNodes(n int) {
	for i := 0; i < n; i++ {
		keep = append(keep, &node{})
	}
}

func inlined(i int) string { return fmt.Sprintf("text number %d of many", i) }

//go:noinline
func addTexts(n int) {
	for i := 0; i < n; i++ {
		texts = append(texts, inlined(i))
	}
}

//go:noinline
func garbage(n int) {
	for i := 0; i < n; i++ {
		slices = append(slices, make([]int, 1000))
	}
	slices = nil
}

//go:noinline
func deeper(d int, f func()) {
	if d == 0 {
		f()
		return
	}
	deeper(d-1, f)
}

func main() {
	var rate int
	fmt.Sscan(os.Args[2], &rate)
	if rate != 0 {
		runtime.MemProfileRate = rate
	}
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGTERM)
	done := make(chan bool)
	go func() { addNodes(3000); done <- true }()
	<-done
	addTexts(20000)
	garbage(500)
	deeper(10, func() { addNodes(100) })
	if len(os.Args) <= 3 {
		runtime.GC()
	}
	f, err := os.Create(os.Args[1] + ".tmp")
	if err == nil {
		err = pprof.WriteHeapProfile(f)
	}
	if err != nil {
		panic(err)
	}
	f.Close()
	os.Rename(os.Args[1]+".tmp", os.Args[1])
	<-c
	fmt.Println(len(keep), len(texts))
}
