"""mleak record --kernel: stacks that are known by the tables of the kernel's unwinder are those that the
kernel's own walk finds, and no block is lost where many have the same place in mleak's table."""

import os
import re
import subprocess

from kerneltest import KernelCase
from mleaktest import read_line, wait_until

# It is told to go on, and says what it did.  Descriptors, files and processes are all closed again.
LOAD = """import os, socket, sys
open("/proc/self/comm", "w").write(sys.argv[1])

def files(n):
    path = os.path.join(sys.argv[2], "file%d" % (n % 7))
    with open(path, "wb") as out:
        out.write(bytes(3 * 4096))
    os.rename(path, path + ".new")
    os.listdir(sys.argv[2])
    os.unlink(path + ".new")

def pipes(n):
    ends = os.pipe()
    os.write(ends[1], bytes(5000))
    os.read(ends[0], 5000)
    for end in ends:
        os.close(end)

def sockets(n):
    kind = (socket.SOCK_STREAM, socket.SOCK_DGRAM)[n % 2]
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    one.send(bytes(2000))
    other.recv(2000)
    one.close()
    other.close()

def forks(n):
    if n % 10 == 0:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)

print("ready", flush=True)
while sys.stdin.readline():
    for n in range(100):
        for kind in (files, pipes, sockets, forks):
            kind(n)
    print("done", flush=True)
"""
ROUNDS = 6

# Many links, each made or removed by one system call.
LINKS = """import os, sys
open("/proc/self/comm", "w").write(sys.argv[1])
names = [os.path.join(sys.argv[2], str(n)) for n in range(int(sys.argv[3]))]
print("ready", flush=True)
for command in sys.stdin:
    for name in names:
        os.symlink("short", name) if command == "make\\n" else os.unlink(name)
    print("done", flush=True)
"""
MANY = 20000
ATTEMPTS, PATIENCE = 4, 40


class KernelStacksTest(KernelCase):
    has_target = False  # these programs are not compiled

    def folder_in_memory(self):
        """A folder on tmpfs."""
        folder = self.path("memory")
        os.mkdir(folder)
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
        self.addCleanup(subprocess.run, ["umount", folder], check=True)
        return folder

    def test_stacks_are_those_of_the_walk(self):
        """Each stack that is known is walked by the kernel as well, and compared."""
        name = "mlks%d" % os.getpid()
        load = self.spawn(["python3", "-c", LOAD, name, self.folder_in_memory()], stdin=subprocess.PIPE)
        self.assertEqual(read_line(load), "ready")
        recorder = self.start("--comm", name, env={**os.environ, "MLEAK_CHECK_STACKS": "1"})
        for _ in range(ROUNDS):
            self.tell("more", load)
        said = self.stop(recorder)
        walked, known, wrong = map(int, re.search(
            r"(\d+) walked by the kernel, .*; of these (\d+) checked, (\d+) wrong", said).groups())
        self.assertEqual(wrong, 0, said)
        self.assertGreater(known, 1000)
        self.assertGreater(known, walked)

    def test_no_block_is_lost_where_many_have_one_place(self):
        """The text that a short symbolic link on tmpfs leads to is a block of 8 bytes, the least there is."""
        name, folder = "mlkl%d" % os.getpid(), self.folder_in_memory()
        links = self.spawn(["python3", "-c", LINKS, name, folder, str(MANY)], stdin=subprocess.PIPE)
        self.assertEqual(read_line(links), "ready")
        for options in ([], ["--events"], ["--max-block", "8", "--max-blocks", str(2 * MANY)]):
            with self.subTest(options=options):
                self.assertTrue(any(self.are_all_freed(links, name, options) for _ in range(ATTEMPTS)))

    def are_all_freed(self, links, name, options):
        """Are all found again that were made?  The kernel frees them in batches, on top of any task, when no processor
        can have them in use any more (RCU); and there are machines whose kernel runs no eBPF on top of the first
        process, where mleak cannot see a batch."""
        recorder = self.start("--comm", name, *options)
        self.tell("make", links)
        wait_until(lambda: self.smallest() >= MANY, "not all is written")
        self.assertEqual(self.smallest(), MANY)
        self.tell("remove", links)
        try:
            wait_until(lambda: self.smallest() <= self.lost(self.path("x.mlk")), "not all is freed", PATIENCE)
            freed = True
        except AssertionError:
            freed = False
        self.assertNotIn("the table of blocks was full", self.stop(recorder))
        return freed

    def smallest(self):
        """How many blocks of 8 bytes are outstanding."""
        caches = self.groups(self.path("x.mlk"), "cache")
        return sum(blocks for cache, blocks in caches.items() if re.search("^kmalloc.*-8$", cache))


del KernelCase
