// calls.go - calls of C from goroutines; prints what the Go runtime says of the callers of each
//
// One line for each stack: blocks, bytes, and the frames of runtime.CallersFrames, innermost first,
// as FUNCTION|FILE|LINE.  With an argument it prints its process id and waits for a line first, and
// for another one at the end.
package main

/*
#cgo LDFLAGS: -lpthread
#include <pthread.h>
#include <stdlib.h>

extern void goCallback(int depth);
extern void goFromThread(int depth);

static void *volatile kept[4096];
static volatile int nr;

// What is called with different parts of its own stack in use.
__attribute__((noinline)) static int leak(int size, int room)
{
	volatile char *space = __builtin_alloca(room);

	space[0] = space[room - 1] = 1;
	kept[__atomic_fetch_add(&nr, 1, __ATOMIC_RELAXED)] = malloc(size);
	return 1;
}

__attribute__((noinline)) static void call_go(int depth, int room)
{
	volatile char *space = __builtin_alloca(room);

	space[0] = space[room - 1] = 1;
	goCallback(depth);
	space[0] = 2;
}

static void *thread_of_c(void *arg)
{
	goFromThread((int)(long)arg);
	return NULL;
}

__attribute__((noinline)) static void run_thread(int depth)
{
	pthread_t thread;

	pthread_create(&thread, NULL, thread_of_c, (void *)(long)depth);
	pthread_join(thread, NULL);
}
*/
import "C"

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
)

type total struct{ blocks, bytes int }

var (
	lock   sync.Mutex
	totals = map[string]*total{}
)

const size = 47

// note is called on the line of the call of C, by the function that makes it, with the blocks that
// this has leaked.
//
//go:noinline
func note(blocks C.int) {
	count := int(blocks)
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var text strings.Builder
	for {
		f, more := frames.Next()
		fmt.Fprintf(&text, " %s|%s|%d", f.Function, f.File, f.Line)
		if !more {
			break
		}
	}
	lock.Lock()
	defer lock.Unlock()
	if totals[text.String()] == nil {
		totals[text.String()] = &total{}
	}
	totals[text.String()].blocks += count
	totals[text.String()].bytes += count * size
}

//go:noinline
func direct(room int) {
	note(C.leak(size, C.int(room)))
}

// The stack grows, and moves, on the way.
//
//go:noinline
func deep(depth int, room int) byte {
	var space [900]byte
	space[depth] = byte(depth)
	if depth == 0 {
		direct(room)
		return space[0]
	}
	return deep(depth-1, room) + space[depth]
}

func inlined(room int) {
	note(C.leak(size, C.int(room)))
}

//go:noinline
func callsInlined(room int) {
	inlined(room)
}

//export goCallback
func goCallback(depth C.int) {
	if depth > 0 {
		nested(int(depth) - 1)
	}
	note(C.leak(size, 100))
	deep(int(depth), 300)
}

//go:noinline
func nested(depth int) {
	C.call_go(C.int(depth), C.int(100+depth*1000))
	note(C.leak(size, 2000))
}

//export goFromThread
func goFromThread(depth C.int) {
	note(C.leak(size, 500))
	nested(int(depth))
}

type method struct{ room int }

//go:noinline
func (m *method) call(f func(int)) {
	defer f(m.room)
	f(m.room)
}

func work(i int, done *sync.WaitGroup) {
	defer done.Done()
	if i%3 == 0 {
		runtime.LockOSThread()
	}
	for k := 0; k < 23; k++ {
		direct(50 + k*8)
		runtime.Gosched()
	}
	deep(i*5, 64+i*500)
	callsInlined(128)
	nested(i % 4)
	(&method{i*8 + 8}).call(func(room int) { direct(room) })
	if i%4 == 0 {
		C.run_thread(C.int(i % 3))
	}
}

func main() {
	in := bufio.NewReader(os.Stdin)
	if len(os.Args) > 1 {
		fmt.Println(os.Getpid())
		in.ReadString('\n')
	}
	var done sync.WaitGroup
	for i := 0; i < 12; i++ {
		done.Add(1)
		go work(i, &done)
	}
	done.Wait()
	direct(8)
	for stack, t := range totals {
		if t.blocks > 0 {
			fmt.Printf("%d %d%s\n", t.blocks, t.bytes, stack)
		}
	}
	if len(os.Args) > 1 {
		fmt.Println("end")
		in.ReadString('\n')
	}
}
