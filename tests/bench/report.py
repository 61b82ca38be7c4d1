"""How long a report takes, in one run on the same compile of a C++ file, its stacks recorded whole:
`mleak report --inline` against heaptrack_print on heaptrack's trace, and on a small compile against
`perf report` on what a uprobe on malloc with --call-graph dwarf,65528 recorded.

usage: report.py MLEAK SOURCE [ROUNDS]

Rounds alternate, figures are medians, and ratios of medians.  `wall` is as long as it took, `CPU`
what it cost on all CPUs together.  What heaptrack_print reads was prepared by heaptrack_interpret;
with mleak that is `mleak unwind`, and not needed.  So like is compared with like: a report of the
prepared trace with heaptrack_print, and one of the trace as it was recorded with both programs of
heaptrack.  A report of the trace as `mleak record` leaves it reads what that kept beside it, as a
second report does of what the first one kept.  What that costs is in the last rows: all from the
start of the command, which is recorded, to the end of the report.

perf looks names up by a run of addr2line for each address unless told --no-inline, loses most
samples of that size, and is stopped after ten minutes.  Its probe is only on the compiler that is
started here; its name is of this run, and it is removed.
"""

import os
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HEAPTRACK_INTERPRET = "/usr/lib/heaptrack/libexec/heaptrack_interpret"
SMALL = "#include <string>\nint main() { std::string s = \"a\"; return s.size(); }\n"
PERF_LIMIT = 600


def compiler(source):
    """The command of the compiler proper, without a driver that starts it."""
    shown = subprocess.run(["clang++", "-###", "-O1", "-c", source, "-o", os.devnull],
                           capture_output=True, text=True, check=True).stderr
    return shlex.split(shown.strip().splitlines()[-1])


def run(command, **options):
    """Wall and CPU seconds, its largest memory in MiB, and stderr.  -1 as wall: it was stopped."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, **options)
    try:
        err = process.communicate(timeout=PERF_LIMIT)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return -1, 0, 0, ""
    wall = time.monotonic() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise SystemExit("%s failed: %s" % (command[:3], err[-500:]))
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss / 1024, err


def rounds_of(ways, rounds):
    """Name to its median wall and CPU seconds."""
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, command in ways.items():
            times[name].append(run(command)[:2])
    return {name: tuple(statistics.median(t[i] for t in all_) for i in (0, 1))
            for name, all_ in times.items()}


def show(name, median, whole):
    print("  %-34s wall %7.2f s   CPU %7.2f s   mleak is %6.2f times as fast by wall, %6.2f by CPU"
          % (name, *median, median[0] / whole[0], median[1] / whole[1]), flush=True)


def record(mleak, trace, command):
    said = run([mleak, "record", "--backend", "bpf", "-o", trace, "--"] + command)[3]
    found = re.search(r"(\d+) allocations?, (\d+) frees?, (\d+) lost", said)
    return [int(n) for n in found.groups()]


def against_heaptrack(mleak, folder, source, rounds):
    command, trace = compiler(source), os.path.join(folder, "large.mlk")
    allocs, frees, lost = record(mleak, trace, command)
    print("clang compiles %s: %d allocations, %d frees, %d lost" % (
        os.path.basename(source), allocs, frees, lost), flush=True)
    unwound = os.path.join(folder, "unwound.mlk")
    run([mleak, "unwind", "-o", unwound, trace])
    print("  the trace has %.0f MB, unwound %.0f MB" % (
        os.path.getsize(trace) / 1e6, os.path.getsize(unwound) / 1e6), flush=True)
    prepared, direct = "mleak report --inline, unwound", "mleak report --inline --no-cache"
    first, second = "a report that makes the cache", "a report of it as recorded"
    if not os.path.exists(trace + ".stacks"):
        raise SystemExit("mleak record kept nothing for the first report")
    again = os.path.join(folder, "again.mlk")
    os.link(trace, again)  # what mleak record kept stays as it is
    ways = {prepared: [mleak, "report", "--inline", "--no-cache", unwound],
            direct: [mleak, "report", "--inline", "--no-cache", trace],
            "the same with --jobs 1": [mleak, "report", "--inline", "--no-cache", "-j", "1", trace],
            first: ["sh", "-c", "rm -f %s.stacks && exec %s report --inline %s" % (again, mleak, again)],
            second: [mleak, "report", "--inline", trace],
            "mleak unwind": [mleak, "unwind", "-o", os.path.join(folder, "further.mlk"), trace]}
    rss = run([mleak, "report", "--inline", "--no-cache", "--jobs", "2", trace])[2]
    if shutil.which("heaptrack") and os.path.exists(HEAPTRACK_INTERPRET):
        base = os.path.join(folder, "heap")
        run(["heaptrack", "--raw", "-o", base] + command)
        interpret = "zstd -dc < %s.raw.zst | %s | zstd -c > %s.zst" % (
            base, HEAPTRACK_INTERPRET, base)
        run(["sh", "-c", interpret])
        ways["heaptrack_print"] = ["heaptrack_print", base + ".zst"]
        ways["heaptrack_interpret and _print"] = [
            "sh", "-c", "%s && heaptrack_print %s.zst" % (interpret, base)]
    medians = rounds_of(ways, rounds)
    whole = medians[direct]
    print("  against %s:" % direct)
    for name, median in medians.items():
        show(name, median, whole)
    for than in prepared, second:
        print("  against %s:" % than)
        for name in (direct, "heaptrack_print"):
            if name in medians:
                show(name, medians[name], medians[than])
    print("  the cache has %.0f MB" % (os.path.getsize(trace + ".stacks") / 1e6))
    tens = (allocs + frees) / 1e7
    print("  for 10 M events: wall %.2f s, CPU %.2f s; memory %.0f MiB for all %.1f M, two threads" % (
        whole[0] / tens, whole[1] / tens, rss, tens * 10), flush=True)


def whole_way(mleak, folder, source, rounds):
    """From the start of the command to the end of the report."""
    command, trace = compiler(source), os.path.join(folder, "whole.mlk")
    quoted = " ".join(shlex.quote(word) for word in command)
    of_mleak = "%s record -q %%s -o %s -- %s && %s report --inline %s" % (
        mleak, trace, quoted, mleak, trace)
    ways = {"mleak record and report": ["sh", "-c", of_mleak % "--backend bpf"],
            "the same with --no-cache": ["sh", "-c", of_mleak % "--backend bpf --no-cache"],
            "the same by preload": ["sh", "-c", of_mleak % "--backend preload"],
            "the command alone": command}
    if shutil.which("heaptrack"):
        ways["heaptrack and heaptrack_print"] = [
            "sh", "-c", "heaptrack -o %s/whole %s && heaptrack_print %s/whole.zst" % (folder, quoted, folder)]
    medians = rounds_of(ways, rounds)
    print("  from the command's start to the report's end, against %s:" % "mleak record and report")
    for name, median in medians.items():
        show(name, median, medians["mleak record and report"])


def perf_record(folder, command):
    """Record mallocs of @command, and only of it.  Returns the file, or None."""
    libc = os.path.realpath("/lib/x86_64-linux-gnu/libc.so.6")
    name, data = "mleak_bench_%d" % os.getpid(), os.path.join(folder, "perf.data")
    added = subprocess.run(["perf", "probe", "-q", "-x", libc, "--add", name + "=malloc"],
                           capture_output=True, text=True)
    if added.returncode:
        print("perf probe: " + added.stderr.strip()[-200:])
        return None
    try:
        run(["perf", "record", "-q", "-o", data, "-e", "probe_libc:" + name, "--call-graph",
             "dwarf,65528", "-m", "64M", "--"] + command)
    finally:
        subprocess.run(["perf", "probe", "-q", "-d", "probe_libc:" + name], check=True)
    return data


def against_perf(mleak, folder, rounds):
    source, trace = os.path.join(folder, "small.cc"), os.path.join(folder, "small.mlk")
    with open(source, "w", encoding="ascii") as out:
        out.write(SMALL)
    command = compiler(source)
    allocs, _, lost = record(mleak, trace, command)
    data = perf_record(folder, command)
    if not data:
        return
    stats = subprocess.run(["perf", "report", "--stats", "-i", data], capture_output=True,
                           text=True).stdout
    samples = int(re.search(r"SAMPLE events: +(\d+)", stats).group(1))
    print("clang compiles one function: mleak has %d stacks, %d lost; perf has %d" % (
        allocs, lost, samples), flush=True)
    plain = ["perf", "report", "--stdio", "-q", "-i", data]
    ways = {"mleak report --inline": [mleak, "report", "--inline", "--no-cache", trace],
            "perf report --no-inline": plain + ["--no-inline"]}
    medians = rounds_of(ways, rounds)
    medians["perf report (once)"] = run(plain)[:2]
    whole = medians["mleak report --inline"]
    for name, median in medians.items():
        if median[0] < 0:
            print("  %-34s was stopped after %d s" % (name, PERF_LIMIT))
            continue
        show(name, median, whole)
        if name.startswith("perf"):
            print("  %-34s for each stack, by wall: %.0f times" % (
                "", median[0] / samples / (whole[0] / allocs)))


def main():
    mleak, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    os.environ.pop("MLEAK_CACHE", None)
    os.environ.pop("DEBUGINFOD_URLS", None)  # libdw and perf go to the network when it is set
    with tempfile.TemporaryDirectory(prefix="mleak-bench-") as folder:
        against_heaptrack(mleak, folder, source, rounds)
        whole_way(mleak, folder, source, rounds)
        if shutil.which("perf"):
            against_perf(mleak, folder, rounds)


if __name__ == "__main__":
    main()
