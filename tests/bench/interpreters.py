"""interpreters.py - what frames of Python, PHP or Ruby cost, at an allocation and its free

usage: interpreters.py MLEAK PROGRAM [ROUNDS]

PROGRAM is an interpreter with python, php or ruby in its name.  If it contains what interprets, as
Debian's python3.11 and php8.2 do, it is recorded under another name, too, and so without the frames:
the difference is what they cost.  Prints microseconds of an allocation with its free, the least of
ROUNDS (3), by how many functions of the program call.
"""

import os
import shutil
import subprocess
import sys
import tempfile

LOOPS = 4000
DEPTHS = [1, 10, 100]
PROGRAMS = {
    "python": ("-c", """
import sys, time
def allocate():
    start = time.perf_counter()
    for _ in range(%d):
        bytes(2000)
    return time.perf_counter() - start
def call(depth):
    return call(depth - 1) if depth else allocate()
print(min(call(int(sys.argv[1])) for _ in range(5)))
"""),
    "php": ("-r", """
function allocate() {
    $start = hrtime(true);
    for ($i = 0; $i < %d; $i++)
        str_repeat("x", 2000);
    return (hrtime(true) - $start) / 1e9;
}
function call($depth) { return $depth ? call($depth - 1) : allocate(); }
echo min(array_map(fn() => call((int)$argv[1]), range(1, 5)));
"""),
    "ruby": ("-e", """
def allocate
  start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
  i = 0
  while i < %d
    ("x" * 2000).clear
    i += 1
  end
  Process.clock_gettime(Process::CLOCK_MONOTONIC) - start
end
def call(depth) = depth > 0 ? call(depth - 1) : allocate
puts 5.times.map { call(ARGV[0].to_i) }.min
"""),
}


def measure(mleak, program, language, backend, depth, folder):
    option, text = PROGRAMS[language]
    command = [program, option, text % LOOPS, str(depth)]
    if backend:
        command = [mleak, "record", "--backend", backend, "-o", os.path.join(folder, "trace.mlk"), "--", *command]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                         env={**os.environ, "USE_ZEND_ALLOC": "0"}).stdout
    return float(out) / LOOPS * 1e6


def main():
    mleak, program = sys.argv[1:3]
    rounds = int(sys.argv[3]) if sys.argv[3:] else 3
    language = next(name for name in PROGRAMS if name in os.path.basename(os.path.realpath(program)))
    with tempfile.TemporaryDirectory() as folder:
        known, other = [shutil.copy(os.path.realpath(program), os.path.join(folder, name))
                        for name in (language, "interpreter")]
        linked = "lib" + language in subprocess.check_output(["ldd", program], text=True)
        print("%-8s %6s %9s %11s %9s" % ("backend", "depth", "no record", "C frames", language))
        for backend in ("preload", "bpf"):
            for depth in DEPTHS:
                ways = (other, None), (known if linked else other, backend), (known, backend)
                least = [min(measure(mleak, path, language, how, depth, folder) for _ in range(rounds))
                         for path, how in ways]
                c_frames = "-" if linked else "%.2f" % least[1]
                print("%-8s %6d %9.2f %11s %9.2f" % (backend, depth, least[0], c_frames, least[2]))


if __name__ == "__main__":
    main()
