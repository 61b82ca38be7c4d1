#!/usr/bin/env python3
"""mutate_traces.py - traces that are changed and framed anew, with right checksums, frames and index

usage: mutate_traces.py [--seed N] [--runs N | --seconds N] [--keep DIR] MLEAK TRACE...

Unlike a flipped bit of a file, what is changed here gets past every checksum.  Each input is read by
one of mleak's commands; none may be ended by a signal, or take more than its budget of memory and CPU
time, or exit with anything but 0 and 2 (1 is for leaks, which are not asked for).  What fails is kept
in DIR, with the command's line on stdout.  Exit status: 0, or 1 when something failed.
"""

import argparse
import copy
import os
import random
import resource
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import forge

MIB = 1 << 20
ALLOWED = 256 * MIB         # told to the command
MEMORY = ALLOWED + 96 * MIB  # resident: with the program, its libraries and the trace
CPU_SECONDS = 30
WALL_SECONDS = 600          # of a machine on which others are busy, too

COMMANDS = [["report", "--folded"], ["report", "--flat", "-j1"], ["report", "--growth"],
            ["report", "--lost"],
            ["report", "--format=json"], ["report", "--format=heaptrack"], ["report", "--timeline"],
            ["report", "--dump=full"], ["report", "--between", "1ms,1h"],
            ["report", "--addr", "0x1000", "--around", "3"],
            ["report", "--cost", "blocks", "--offsets"], ["info"], ["script"], ["diff"], ["unwind", "-q"],
            ["report", "--verdict", "none,lost,held", "--format=csv"], ["why"], ["why", "--format=json"],
            ["why", "."], ["why", "0x1000"]]
LIMITED = "report", "diff", "unwind", "why"

# A uvar of these is where counts, lengths and deltas overflow.
NUMBERS = [0, 1, 2, 127, 128, 4095, 4096, 4097, 65535, 65536, 1 << 20, (1 << 22) + 1, 1 << 31,
           (1 << 32) - 1, 1 << 32, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]


# Changes of the content of a chunk: each returns another one

def flip(rng, content):
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def number(rng, content):
    """Some bytes become one number."""
    at = near_the_beginning(rng, content)
    return content[:at] + forge.uvar(rng.choice(NUMBERS)) + content[at + rng.randrange(1, 4):]


def cut(rng, content):
    return content[:rng.randrange(len(content))]


def insert(rng, content):
    at = near_the_beginning(rng, content)
    return content[:at] + rng.randbytes(rng.choice((1, 2, 16, 300))) + content[at:]


def repeat(rng, content):
    """A part, many times: what takes little in a file and much in memory."""
    at = rng.randrange(len(content))
    part = content[at:at + rng.choice((1, 2, 8, 64))]
    room = 4 * MIB - len(content)
    return content[:at] + part * min(rng.choice((2, 100, 50000)), room // len(part)) + content[at:]


def fill(rng, content):
    at = rng.randrange(len(content))
    length = rng.choice((1, 8, 64, 4096))
    return content[:at] + rng.choice((b"\0", b"\xff", b"\x80", b"\x7f")) * length + content[at + length:]


def near_the_beginning(rng, content):
    """Where lengths and counts stand, half of the time."""
    return rng.randrange(min(len(content), rng.choice((16, 200, len(content)))))


CONTENTS = [flip, number, cut, insert, repeat, fill]


# Changes of the framing: each changes the trace in place

def times(rng, trace):
    chunk = rng.choice(trace.chunks)
    chunk.first, chunk.last = (max(0, t + rng.choice((0, -1, 1, -10 ** 12, 10 ** 12))) for t in
                               (chunk.first, chunk.last))


def kind(rng, trace):
    rng.choice(trace.chunks).kind = rng.randrange(14)


def order(rng, trace):
    rng.shuffle(trace.chunks)


def lose(rng, trace):
    trace.chunks.remove(rng.choice(trace.chunks))


def double(rng, trace):
    chunk = rng.choice(trace.chunks)
    trace.chunks[trace.chunks.index(chunk):0] = [copy.copy(chunk)
                                                 for _ in range(rng.choice((1, 3, 20)))]


def sequence(rng, trace):
    rng.choice(trace.chunks).seq = rng.choice(NUMBERS)


def wrong_sum(rng, trace):
    rng.choice(trace.chunks).wrong = b"x"


def records(rng, trace):
    rng.choice(trace.chunks).records = rng.choice(NUMBERS) & 0xffffffff


def index(rng, trace):
    field, more = rng.randrange(6), rng.choice((1, 3, 1 << 20, 1 << 40))

    def lie(entry):
        if rng.randrange(4) == 0:
            entry[field] += more
        return entry

    trace.lie = lie


def no_index(_, trace):
    trace.indexed = False


FRAMINGS = [times, kind, order, lose, double, sequence, wrong_sum, records, index, no_index]


def mutant(rng, trace):
    """The bytes of a trace that is @trace but for some changes."""
    changed = copy.copy(trace)
    changed.chunks = [copy.copy(chunk) for chunk in trace.chunks]
    for _ in range(rng.choice((1, 1, 2, 4))):
        if not changed.chunks:
            break
        if rng.randrange(3) == 0:
            rng.choice(FRAMINGS)(rng, changed)
            continue
        # what is rare in a trace is changed as often as its many modules
        wanted = rng.choice(sorted({chunk.kind for chunk in changed.chunks}))
        chunk = rng.choice(changed.of(wanted))
        if chunk.content:
            chunk.content = rng.choice(CONTENTS)(rng, chunk.content)[:4 * MIB]
            chunk.compressed = rng.randrange(3) == 0
    return changed.bytes()


def command(rng, mleak, path, other, out):
    words = rng.choice(COMMANDS)
    line = [mleak, *words]
    if words[0] in LIMITED:
        line.append("--max-memory=%d" % ALLOWED)
    if words[0] == "diff":
        return line + rng.choice(([path, other], [other, path]))
    return line + (["-o", out, path] if words[0] == "unwind" else [path])


def fault(line):
    """What is wrong with a run of @line; None: nothing."""
    with tempfile.TemporaryFile() as err, open(os.devnull, "wb") as null:
        process = subprocess.Popen(line, stdin=null, stdout=null, stderr=err, preexec_fn=lambda:
                                   resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS,) * 2))
        end = time.monotonic() + WALL_SECONDS
        pid, pause = 0, 0.001
        while not pid:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if not pid and time.monotonic() > end:
                process.kill()
                os.wait4(process.pid, 0)
                return "does not end"
            time.sleep(0 if pid else pause)
            pause = min(pause * 1.5, 0.05)
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        said = err.read(65536).decode(errors="replace")
    if process.returncode not in (0, 2):
        return "exit status %d, after %.1f s of CPU time; %s" % (process.returncode,
                                                                 usage.ru_utime, said[-500:])
    if "Sanitizer" in said or "runtime error" in said:
        return said[-2000:]
    if process.returncode and len(said.splitlines()) == 0:
        return "fails without a word"
    if usage.ru_maxrss * 1024 > MEMORY:
        return "takes %d MiB" % (usage.ru_maxrss >> 10)
    return None


def run(mleak, traces, seed, runs=None, seconds=None, keep=None, tell=print):
    """Mutate and read until there were so many runs, or so many seconds are over.  Returns how many
    runs there were, and how many failed."""
    parsed = [forge.Trace.read(path) for path in traces]
    end = time.monotonic() + seconds if seconds else None
    done = failed = 0
    with tempfile.TemporaryDirectory(prefix="mleak-fuzz-") as folder:
        path, out = os.path.join(folder, "x.mlk"), os.path.join(folder, "out.mlk")
        while time.monotonic() < end if end else done < runs:
            # each has a seed of its own, so that one can be made again by itself
            rng = random.Random("%s/%d" % (seed, done))
            with open(path, "wb") as file:
                file.write(mutant(rng, rng.choice(parsed)))
            line = command(rng, mleak, path, rng.choice(traces), out)
            wrong = fault(line)
            done += 1
            if not wrong:
                continue
            failed += 1
            kept = path
            if keep:
                os.makedirs(keep, exist_ok=True)
                kept = os.path.join(keep, "trace-%s-%d.mlk" % (seed, done - 1))
                os.replace(path, kept)
            tell("%s: %s" % (" ".join(line).replace(path, kept), wrong))
    return done, failed


def main():
    parser = argparse.ArgumentParser(description="Read traces that are changed and framed anew.")
    parser.add_argument("--seed", default=str(int(time.time())))
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--keep", metavar="DIR")
    parser.add_argument("mleak")
    parser.add_argument("traces", nargs="+")
    args = parser.parse_args()
    done, failed = run(args.mleak, args.traces, args.seed, args.runs, args.seconds, args.keep)
    print("seed %s: %d traces read, %d failed" % (args.seed, done, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
