"""Code put into programs of other languages: what they allocate by the C library's allocator is recorded, and they
work as before."""

import os
import shutil
import subprocess

from injecttest import InjectCase, State, ours_in
from mleaktest import parse_folded, parse_totals, read_line

REQUESTS = 3  # after which all that is done once has been done
SECONDS = 300  # for a compiler, at most

# Each says "ready", and for each line that it reads, after 23 blocks of 47 bytes have leaked, "done".
RUST = """
use std::collections::HashMap;
use std::io::{BufRead, Write};
#[inline(never)]
fn leak_here() { std::mem::forget(std::hint::black_box(vec![1u8; 47])); }
fn serve() {
    let mut seen: HashMap<String, Vec<String>> = HashMap::new();
    for i in 0..22 { leak_here(); seen.entry(format!("key{}", i % 5)).or_default().push(format!("{:?}", i)); }
    std::thread::spawn(leak_here).join().unwrap();
}
fn main() {
    println!("ready");
    for line in std::io::stdin().lock().lines() {
        line.unwrap();
        serve();
        println!("done");
        std::io::stdout().flush().unwrap();
    }
}
"""
GO = """
package main
// #include <stdlib.h>
// __attribute__((noinline)) static void leak_here(void) { void *volatile p = malloc(47); (void)p; }
import "C"
import ("bufio"; "fmt"; "os"; "sync")
func serve() {
	var all sync.WaitGroup
	for i := 0; i < 23; i++ {
		all.Add(1)
		go func() { C.leak_here(); all.Done() }()
	}
	all.Wait()
}
func main() {
	lines := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for lines.Scan() { serve(); fmt.Println("done") }
}
"""
ADA = """
with Ada.Text_IO; use Ada.Text_IO;
procedure Program is
   type Block is array (1 .. 47) of Character;
   type Pointer is access Block;
   procedure Leak_Here is
      P : Pointer := new Block'(others => 'x');
      pragma Volatile (P);
   begin
      null;
   end Leak_Here;
   task type Worker;
   task body Worker is
   begin
      Leak_Here;
   end Worker;
   procedure Serve is
      W : Worker;
   begin
      for I in 1 .. 22 loop
         Leak_Here;
      end loop;
   end Serve;
begin
   Put_Line ("ready");
   Flush;
   while not End_Of_File loop
      declare
         Line : constant String := Get_Line;
         pragma Unreferenced (Line);
      begin
         Serve;
      end;
      Put_Line ("done");
      Flush;
   end loop;
end Program;
"""
FORTRAN = """
subroutine leak_here()
  integer(1), pointer :: p(:)
  allocate(p(47))
  p(1) = 1
end subroutine
program leaks
  character(len=80) :: line
  integer :: i, status
  print '(a)', 'ready'
  flush(6)
  do
    read(*, '(a)', iostat=status) line
    if (status /= 0) exit
    do i = 1, 23
      call leak_here()
    end do
    print '(a)', 'done'
    flush(6)
  end do
end program
"""
PASCAL = """
program leaks;
uses cmem;
procedure LeakHere;
var p: pointer;
begin
  getmem(p, 39); { and 8 bytes of its own }
end;
var
  line: string;
  i: integer;
begin
  writeln('ready');
  flush(output);
  while not eof do begin
    readln(line);
    for i := 1 to 23 do LeakHere;
    writeln('done');
    flush(output);
  end;
end.
"""
# These have heaps of their own, and work: a wrong sum ends them.
NODE = """
const lines = require('readline').createInterface({input: process.stdin});
console.log('ready');
lines.on('line', () => {
  const kept = [];
  for (let i = 0; i < 1000; i++) {
    kept.push(Buffer.alloc(600 + i % 100, i % 256));
    if (JSON.parse(JSON.stringify({a: [i, {b: i}]})).a[1].b !== i) process.exit(3);
  }
  for (let i = 0; i < 1000; i++) for (const byte of kept[i]) if (byte !== i % 256) process.exit(4);
  console.log('done');
});
"""
JAVA = """
import java.io.*;
import java.nio.*;
public class Program {
    static void check(int first) {
        ByteBuffer b = ByteBuffer.allocateDirect(4096);
        for (int i = 0; i < 4096; i++) b.put((byte) (first + i));
        for (int i = 0; i < 4096; i++) if (b.get(i) != (byte) (first + i)) System.exit(4);
    }
    public static void main(String[] none) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        while (in.readLine() != null) {
            Thread[] threads = new Thread[8];
            for (int i = 0; i < 8; i++) {
                final int first = i;
                threads[i] = new Thread(() -> { for (int k = 0; k < 50; k++) check(first + k); });
                threads[i].start();
            }
            for (Thread t : threads) t.join();
            System.out.println("done");
        }
    }
}
"""


class LanguagesTest(InjectCase):
    def compile(self, name, source, *argv):
        """The program that @argv makes of @source."""
        path = shutil.which(argv[0]) or os.path.join(os.path.expanduser("~/.cargo/bin"), argv[0])
        if not os.path.exists(path):
            self.skipTest(argv[0] + " is not installed")
        self.write(name, source.encode())
        environment = dict(os.environ, GOFLAGS="-mod=mod", GO111MODULE="off", GOCACHE=self.path("go"))
        built = self.finish(self.spawn([path, *argv[1:], name], env=environment), SECONDS)
        self.assertEqual(built.status, 0, built.err)
        return self.path("program")

    def start(self, *argv):
        process = self.spawn(argv, stdin=subprocess.PIPE)
        self.assertEqual(read_line(process), "ready")
        for _ in range(REQUESTS):
            self.ask(process)
        return process

    def ask(self, process):
        process.stdin.write(b"more\n")
        self.assertEqual(read_line(process), "done")

    def end(self, process):
        self.ask(process)
        process.stdin.close()
        process.stdin = None
        self.assertEqual(self.finish(process).status, 0)

    def check(self, *argv):
        process = self.start(*argv)
        state = State(process.pid)
        mleak = self.attach(process.pid)
        self.ask(process)
        self.detach(mleak)
        totals = parse_totals(self.report(self.path("x.mlk")))
        # Go may start a thread meanwhile, of which the C library keeps something
        own = [s for s in parse_folded(self.report(self.path("x.mlk"), "--format=folded"))
               if not [frame for frame in s.frames if "pthread_create" in frame]]
        self.assertEqual(sum(stack.bytes for stack in own), 23 * 47)
        self.assertGreaterEqual(totals.outstanding.blocks, 23)
        self.assertEqual(totals.lost, 0)
        self.assert_unchanged(process.pid, state)
        self.end(process)

    def check_works(self, *argv):
        process = self.start(*argv)
        for _ in range(REQUESTS):
            mleak = self.attach(process.pid)
            self.ask(process)
            self.assertIn(" 0 lost", self.detach(mleak))
            self.assertEqual(ours_in(process.pid), [])
        self.end(process)

    def test_rust(self):
        self.check(self.compile("program.rs", RUST, "rustc", "-O", "-g"))

    def test_go(self):
        self.check(self.compile("program.go", GO, "go", "build", "-o", "program"))

    def test_ada(self):
        self.check(self.compile("program.adb", ADA, "gnatmake", "-q", "-g", "-O1"))

    def test_fortran(self):
        self.check(self.compile("program.f90", FORTRAN, "gfortran", "-O1", "-g", "-o", "program"))

    def test_pascal(self):
        self.check(self.compile("program.pas", PASCAL, "fpc", "-v0", "-g", "-oprogram"))

    def test_node(self):
        if not shutil.which("node"):
            self.skipTest("node is not installed")
        self.check_works("node", self.write("program.js", NODE.encode()))

    def test_java(self):
        if not shutil.which("java"):
            self.skipTest("java is not installed")
        self.compile("Program.java", JAVA, "javac")
        self.check_works("java", "-Xmx64m", "-cp", self.dir, "Program")
