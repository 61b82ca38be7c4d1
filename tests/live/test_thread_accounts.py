"""`--by thread`: what each thread allocated, and which threads freed it; the truth is what the target
counted itself, by the thread that allocated and the one that freed."""

import collections
import csv
import io
import json
import re

from backends import both_backends
from mleaktest import Case, needs_bpf, number
from test_filters import FilterCase

Amount = collections.namedtuple("Amount", "blocks bytes")
NONE = Amount(0, 0)


def amount(of):
    return Amount(of["blocks"], of["bytes"])


class Truth:
    """What the lines of the target's command "who" say, by the numbers of threads."""

    def __init__(self, lines, tids):
        self.given, self.freed = {}, collections.defaultdict(lambda: NONE)
        for line in lines:
            found = re.fullmatch(r"who (\d+) (-1|\d+) (\d+) (\d+)\n?", line)
            owner, freer, blocks, size = map(int, found.groups())
            if freer < 0:
                self.given[tids[owner]] = Amount(blocks, size)
            else:
                self.freed[tids[owner], tids[freer]] = Amount(blocks, size)

    def sum_of_freed(self, chosen):
        found = [a for pair, a in self.freed.items() if chosen(*pair)]
        return Amount(sum(a.blocks for a in found), sum(a.bytes for a in found))

    def row(self, tid):
        given = self.given.get(tid, NONE)
        freed = self.sum_of_freed(lambda owner, _: owner == tid)
        return {"allocated": given,
                "freed_by_itself": self.freed[tid, tid],
                "freed_by_others": self.sum_of_freed(lambda o, f: o == tid and f != tid),
                "freed_of_others": self.sum_of_freed(lambda o, f: o != tid and f == tid),
                "implied_or_gone": NONE,
                "outstanding": Amount(given.blocks - freed.blocks, given.bytes - freed.bytes)}


class AccountsCase(FilterCase):
    def groups(self, trace, *args):
        return json.loads(self.report(trace, "--format=json", *(args or ["--by", "thread"])))

    def assert_rows(self, document, truth, tids):
        rows = {group["tid"]: group for group in document["groups"]}
        for tid in tids:
            row = truth.row(tid)
            if row["allocated"] != NONE or row["freed_of_others"] != NONE:
                self.assertEqual({key: amount(rows[tid][key]) for key in row}, row, tid)
        self.assertEqual(set(rows) - set(tids), set())

    def assert_pairs(self, document, truth):
        self.assertEqual({tuple(int(pair[who].split()[0]) for who in ("allocated_by", "freed_by")):
                          amount(pair["freed"]) for pair in document["freed_by"]},
                         {pair: a for pair, a in truth.freed.items()
                          if pair[0] != pair[1] and a != NONE})


WORK = ["0 keep 30 1009", "1 keep 40 2003", "2 drop 11", "0 drop 13", "3 keep 5 4001", "3 drop 2",
        "1 grow 7 3001", "2 fail 5", "2 keep 3 5003", "0 drop 1"]


@both_backends
class AccountsTest(AccountsCase):
    def recorded(self, options=("-z", "1000")):
        trace, out = self.record("./target", *("%d tid 0" % t for t in range(4)), *WORK, "0 who 0",
                                 options=options)
        lines = out.splitlines()
        tids = [int(line.split()[1]) for line in lines if line.startswith("tid ")]
        return trace, Truth([line for line in lines if line.startswith("who ")], tids), tids

    def test_each_thread_and_who_freed(self):
        trace, truth, tids = self.recorded()
        document = self.groups(trace)
        self.assert_rows(document, truth, tids)
        self.assert_pairs(document, truth)
        self.assertEqual(len(truth.given), 4)
        self.assertGreater(len(truth.freed), 5)
        rows = list(csv.DictReader(io.StringIO(
            self.report(trace, "--by", "thread", "--format=csv"), newline="")))
        for row in rows:
            for key, of in truth.row(int(row["tid"])).items():
                self.assertEqual((int(row[key + "_blocks"]), int(row[key + "_bytes"])), of)

    def test_text(self):
        trace, truth, tids = self.recorded()
        text = self.report(trace, "--by", "thread")
        rows = {int(tid): list(map(number, numbers.split())) for numbers, tid in re.findall(
            r"(?m)^((?: +[\d,]+){6})  (\d+) target$", text)}
        for tid in tids:
            row = truth.row(tid)
            self.assertEqual(rows[tid], [row["outstanding"].bytes, row["outstanding"].blocks,
                                         row["allocated"].bytes, row["allocated"].blocks,
                                         row["freed_by_itself"].blocks,
                                         row["freed_by_others"].blocks])
        pairs = {(int(owner), int(freer)): Amount(number(blocks), number(size))
                 for size, blocks, owner, freer in re.findall(
                     r"(?m)^ +([\d,]+) +([\d,]+)  (\d+) target -> (\d+) target$", text)}
        self.assertEqual(pairs, {pair: a for pair, a in truth.freed.items()
                                 if pair[0] != pair[1] and a != NONE})

    def test_threads_of_one_name_are_one_row(self):
        trace, truth, _ = self.recorded()
        group, = self.groups(trace, "--by", "thread-name")["groups"]
        given = [truth.given[tid] for tid in truth.given]
        self.assertEqual((group["thread-name"], group["threads"], amount(group["allocated"])),
                         ("target", 4, Amount(sum(a.blocks for a in given),
                                              sum(a.bytes for a in given))))
        self.assertIn("  target (4 threads)\n", self.report(trace, "--by", "thread-name"))

    def test_options_that_choose_stacks_choose_of_frees_too(self):
        """All that main allocates is on the stack of main; what threads do is on that of run."""
        trace, truth, tids = self.recorded()
        document = self.groups(trace, "--by", "thread", "--function", "^main$")
        self.assertEqual([(g["tid"], amount(g["allocated"]), amount(g["freed_by_others"]))
                          for g in document["groups"]
                          if g["allocated"]["blocks"]],
                         [(tids[0], truth.given[tids[0]], truth.row(tids[0])["freed_by_others"])])
        self.assertEqual([g["tid"] for g in self.groups(trace, "--by", "thread", "--thread",
                                                        str(tids[1]))["groups"]
                          if g["allocated"]["blocks"]], [tids[1]])


PYTHON = r"""
import ctypes, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
SIZE, blocks, lock, freed = 2000003, [], threading.Lock(), {}

def give(nr):
    mine = [(libc.malloc(SIZE + nr), threading.get_native_id()) for _ in range(nr)]
    with lock:
        blocks.extend(mine)

def take(nr):
    for _ in range(nr):
        with lock:
            block, owner = blocks.pop()
            pair = owner, threading.get_native_id()
            freed[pair] = freed.get(pair, 0) + 1
        libc.free(block)

def run(function, numbers):
    threads = [threading.Thread(target=function, args=[nr]) for nr in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return threads

givers = run(give, [7, 11, 13])
run(take, [5, 3, 17])
for nr, thread in zip([7, 11, 13], givers):
    print("given", thread.native_id, nr, nr * (SIZE + nr))
for (owner, freer), nr in freed.items():
    print("freed", owner, freer, nr)
"""


@both_backends
class PythonTest(Case):
    def test_threads_of_python(self):
        """The thread's blocks are larger than Python's own arenas."""
        trace, out = self.record("python3", "-c", PYTHON, options=["-z", "2000000"])
        given = {int(tid): Amount(int(nr), int(size))
                 for tid, nr, size in re.findall(r"(?m)^given (\d+) (\d+) (\d+)$", out)}
        freed = {(int(owner), int(freer)): int(nr)
                 for owner, freer, nr in re.findall(r"(?m)^freed (\d+) (\d+) (\d+)$", out)}
        document = json.loads(self.report(trace, "--by", "thread", "--format=json"))
        self.assertEqual({group["tid"]: amount(group["allocated"])
                          for group in document["groups"] if group["allocated"]["blocks"]}, given)
        self.assertEqual({tuple(int(pair[who].split()[0]) for who in ("allocated_by", "freed_by")):
                          pair["freed"]["blocks"] for pair in document["freed_by"]}, freed)
        self.assertEqual(sum(group["outstanding"]["blocks"] for group in document["groups"]), 31 - 25)


@needs_bpf
class ProcessesTest(AccountsCase):
    def test_threads_of_several_processes_are_told_apart(self):
        trace, _ = self.record("sh", "-c", "./target '0 keep 3 1009'; ./target '0 keep 5 1009'",
                               options=["--follow", "-z", "1000"])
        groups = [g for g in self.groups(trace)["groups"] if g["allocated"]["bytes"] in (3027, 5045)]
        self.assertEqual(len({g["pid"] for g in groups}), 2)
        text = self.report(trace, "--by", "thread")
        for g in groups:
            self.assertIn("  %d target of target (%d)\n" % (g["tid"], g["pid"]), text)


@needs_bpf
class CountedTest(AccountsCase):
    """The cheap phase: threads that are only counted are in the same table."""

    def counted(self, *options, work=WORK):
        """Record with triggers that are out of reach, or not; what the target counted itself."""
        target = self.spawn(["./target"], stdin=-1)
        tids = [self.tid(target, thread) for thread in range(4)]
        mleak, trace = self.attach(target, "-z", "1000", *options)
        for command in work:
            self.tell(target, command)
        truth = Truth(self.tell(target, "0 who 0"), tids)
        self.end(target, mleak)
        return trace, truth, tids

    def assert_counted(self, trace, truth, tids):
        rows = {group["tid"]: group for group in self.groups(trace)["groups"]}
        for tid in tids:
            row = truth.row(tid)
            del row["freed_of_others"]  # of blocks that are only counted it is not known who
            if row["allocated"] != NONE:
                self.assertEqual({key: amount(rows[tid][key]) for key in row}, row, tid)
        return rows

    def check_all_counted(self, trigger):
        trace, truth, tids = self.counted("--trigger", trigger)
        rows = self.assert_counted(trace, truth, tids)
        self.assertNotIn("\n  ALLOC ", self.dump(trace))
        for tid in truth.given:
            self.assertEqual(amount(rows[tid]["counted"]), truth.given[tid])
            self.assertEqual(rows[tid]["counted_outstanding"], rows[tid]["outstanding"])
        self.assertIn("\nonly counted, without stacks: ", self.report(trace, "--by", "thread"))

    def test_all_is_only_counted(self):
        self.check_all_counted("1G")

    def test_all_is_only_counted_until_a_process_has_more(self):
        self.check_all_counted("process:1G")

    def test_all_is_only_counted_until_a_call_site_has_more(self):
        self.check_all_counted("site:1G")

    def test_some_is_recorded_and_the_sums_are_right(self):
        """Blocks that were counted are freed when their thread is recorded, and the other way round."""
        trace, truth, tids = self.counted("--trigger", "40K")
        rows = self.assert_counted(trace, truth, tids)
        counted = amount(rows[tids[1]]["counted"])
        self.assertEqual(counted, Amount(20, 20 * 2003))  # of 40; the 21st reaches 40,960
        self.assertEqual(self.sizes(self.events(self.dump(trace)))[2003], 20)

    def test_a_process(self):
        trace, truth, tids = self.counted("--trigger", "process:60K")
        self.assert_counted(trace, truth, tids)
        # 30 blocks of 1,009 are 30,270; 60K is reached by the 16th of 2,003.
        self.assertEqual(self.sizes(self.events(self.dump(trace)))[2003], 25)
        self.assertIn("not recorded: processes until they had 61,440 bytes outstanding",
                      self.report(trace))

    def test_a_call_site(self):
        """What all threads keep is allocated by one call of malloc; what grows by another one."""
        trace, truth, tids = self.counted("--trigger", "site:20000", work=[
            "0 keep 10 1009", "1 keep 9 1009", "2 drop 19", "1 keep 10 1009", "1 grow 10 1500",
            "2 keep 5 2003", "1 grow 5 2100", "3 keep 1 4001"])
        self.assert_counted(trace, truth, tids)
        # By the call that keeps there are 10,015 left after "2 keep"; then 14,016 in all: counted.
        # By the one that grows 15,000, and then 25,500 less what is resized again.
        sizes = self.sizes(self.events(self.dump(trace)))
        self.assertEqual({size: nr for size, nr in sizes.items() if size in (1009, 4001)}, {})
        self.assertIn("not recorded: call sites until they had 20,000 bytes outstanding",
                      self.report(trace))

    def test_a_trace_of_which_accounts_are_damaged_has_the_rest(self):
        trace, _, _ = self.counted("--trigger", "1G")
        with open(trace, "rb") as file:
            content = bytearray(file.read())
        at = [int(offset, 16) for offset in re.findall(r"(?m)^chunk 0x([0-9a-f]+): ACCOUNTS",
                                                       self.dump(trace))]
        self.assertEqual(len(at) > 0, True)
        for offset in at:
            content[offset + 96] ^= 1
        damaged = self.write("damaged.mlk", bytes(content))
        result = self.mleak("report", "--by", "thread", damaged)
        self.assertEqual(result.status, 0)
        self.assertNotIn("only counted", result.out)
        self.assertIn("is damaged", result.err)

    def test_a_copy_has_the_accounts(self):
        trace, truth, tids = self.counted("--trigger", "40K")
        copy = self.path("copy.mlk")
        self.assertEqual(self.mleak("unwind", "-o", copy, trace).status, 0)
        self.assert_counted(copy, truth, tids)
