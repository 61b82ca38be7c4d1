"""`mleak ctl`: what is recorded is changed while it is; the truth is what the target counted itself."""

import collections
import os
import re
import signal
import socket
import subprocess
import time

from mleaktest import AS_NOBODY, Case, needs_bpf, parse_totals, read_line, wait_until
from test_thread_accounts import AccountsCase, Truth


CXX = r"""
#include <cstdlib>
#include <unistd.h>
#define F __attribute__((noipa))
namespace store {
F void take(int nr) { while (nr--) { void *p = malloc(40); __asm__ volatile("" :: "r"(p) : "memory"); } }
F void take(long nr) { while (nr--) { void *p = malloc(41); __asm__ volatile("" :: "r"(p) : "memory"); } }
}
F static void other(int nr) { while (nr--) { char *p = new char[42]; __asm__ volatile("" :: "r"(p) : "memory"); } }
int main()
{
	char c;
	while (write(1, "done\n", 5) == 5 && read(0, &c, 1) == 1) {
		store::take(3);
		store::take(4l);
		other(5);
	}
}
"""


def listeners(pid):
    """Names of sockets by which the recorder @pid could be asked."""
    with open("/proc/net/unix") as sockets:
        return re.findall(r" @(mleak-record/\d+/%d)$" % pid, sockets.read(), re.M)


class CtlCase(Case):
    def ctl(self, pid, *actions):
        """Have the recorder of @pid do @actions; what it prints."""
        result = self.mleak("ctl", str(pid), *actions)
        self.assertEqual((result.status, result.err), (0, ""), actions)
        return result.out

    def refused(self, naming, *args, **options):
        result = self.mleak("ctl", *map(str, args), **options)
        self.assertEqual(result.status, 2, result.err)
        self.assert_one_message(result.err, naming)


class ChosenCase(CtlCase, AccountsCase):
    def sizes_by_thread(self, trace):
        found = collections.defaultdict(collections.Counter)
        for e in self.events(self.dump(trace)):
            if e.kind == "ALLOC":
                found[e.tid][e.size] += 1
        return found

    def target_with_threads(self, nr):
        target = self.spawn(["./target"], stdin=-1)
        return target, [self.tid(target, thread) for thread in range(nr)]

    def who(self, target, tids):
        return Truth(self.tell(target, "0 who 0"), tids)


@needs_bpf
class ChoiceTest(ChosenCase):
    def test_a_thread_is_recorded_from_when_it_is_chosen(self):
        target, tids = self.target_with_threads(3)
        mleak, trace = self.attach(target, "--choose", "counted")
        self.tell(target, "1 keep 10 1101")
        self.ctl(target.pid, "--thread", str(tids[1]))
        self.tell(target, "1 keep 20 1102")
        self.tell(target, "2 keep 30 1103")
        self.tell(target, "1 drop 40")  # 10 of thread 1, recorded, and all of thread 2
        self.ctl(target.pid, "--thread", "%d=counted" % tids[1])
        self.tell(target, "1 keep 5 1104")
        truth = self.who(target, tids)
        self.end(target, mleak)
        self.assertEqual(self.sizes_by_thread(trace), {tids[1]: {1102: 20}})
        self.assertEqual(parse_totals(self.report(trace)).outstanding, (10, 11020))
        self.assert_no_unknown_free(trace)
        rows = {group["tid"]: group for group in self.groups(trace)["groups"]}
        for tid in tids[1:]:
            self.assertEqual(rows[tid]["allocated"]["blocks"], truth.given[tid].blocks)
            self.assertEqual(rows[tid]["allocated"]["bytes"], truth.given[tid].bytes)

    def test_all_but_one_thread(self):
        target, tids = self.target_with_threads(3)
        mleak, trace = self.attach(target, "--choose", "recorded")
        self.tell(target, "1 keep 10 101")
        self.ctl(mleak.pid, "--thread=%d=counted" % tids[1])
        for thread in range(3):
            self.tell(target, "%d keep 20 %d" % (thread, 110 + thread))
        self.end(target, mleak)
        self.assertEqual(self.sizes_by_thread(trace),
                         {tids[0]: {110: 20}, tids[1]: {101: 10}, tids[2]: {112: 20}})

    def test_threads_by_their_name_and_all(self):
        target, tids = self.target_with_threads(2)
        mleak, trace = self.attach(target, "--choose", "recorded")
        self.ctl(target.pid, "--thread", "target=counted")
        self.tell(target, "0 keep 3 101")
        self.tell(target, "1 keep 3 102")
        self.ctl(target.pid, "--thread", "all=recorded")
        self.tell(target, "0 keep 4 103")
        self.ctl(target.pid, "--thread", "all=counted", "--thread", str(tids[1]))
        self.tell(target, "0 keep 5 104")
        self.tell(target, "1 keep 5 105")
        self.refused("has a thread 'elsewhere'", target.pid, "--thread", "elsewhere")
        self.refused("has a thread 1:", target.pid, "--thread", "1")
        self.end(target, mleak)
        self.assertEqual(self.sizes_by_thread(trace), {tids[0]: {103: 4}, tids[1]: {105: 5}})

    def test_a_process_of_two(self):
        """Its threads go before it, and the choice outlives its program."""
        (first, of_first), (second, of_second) = [self.target_with_threads(2) for _ in range(2)]
        mleak, trace = self.attach(first, "-p", str(second.pid), "--choose", "counted")
        self.ctl(mleak.pid, "--process", str(second.pid), "--thread", "%d=counted" % of_second[1])
        for target in first, second:
            for thread in range(2):
                self.tell(target, "%d keep 20 %d" % (thread, 101 + thread))
        self.refused("process 1 is not recorded", mleak.pid, "--process", "1=counted")
        first.stdin.close()
        read_line(first)
        second.stdin.write(b"0 exec 7\n")
        read_line(second)
        self.assertEqual(self.finish(mleak).status, 0)
        sizes = self.sizes_by_thread(trace)
        self.assertEqual(sizes[of_second[0]][101], 20)
        self.assertEqual(sizes[of_second[0]][50], 7)
        self.assertEqual(set(sizes), {of_second[0]})

    def test_a_call_site(self):
        """A site goes before its thread."""
        target, tids = self.target_with_threads(2)
        mleak, trace = self.attach(target, "--choose", "recorded")
        self.ctl(target.pid, "--thread", "all=counted", "--site", "short_life")
        self.tell(target, "0 keep 30 101")
        self.tell(target, "1 threads 6")
        self.ctl(target.pid, "--thread", "all=recorded", "--site", "short_life=counted")
        self.tell(target, "1 threads 8")
        self.tell(target, "1 keep 20 103")
        status = self.ctl(target.pid)
        self.refused("no recorded process has a function 'nowhere'", target.pid, "--site", "nowhere")
        self.refused("0x12zz", target.pid, "--site", "0x12zz")
        self.end(target, mleak)
        sizes = collections.Counter(e.size for e in self.events(self.dump(trace)) if e.kind == "ALLOC")
        self.assertEqual((sizes[24], sizes[101], sizes[103]), (12, 0, 20))
        self.assertRegex(status, r"(?m)^chosen +0 processes, 1 sites$")

    def test_call_sites_of_cxx(self):
        """By names without arguments, and in a library: new is libstdc++'s, where it calls malloc."""
        self.write("store.cc", CXX.encode())
        built = self.finish(self.spawn(["g++", "-O1", "-o", "store", "store.cc"]))
        self.assertEqual(built.status, 0, built.err)
        target = self.spawn(["./store"], stdin=-1)
        self.assertEqual(read_line(target), "done")
        mleak, trace = self.attach(target, "--choose", "counted")
        for site in "store::take", "operator new":
            self.ctl(target.pid, "--thread", "all=counted", "--site", site)
            target.stdin.write(b"x")
            self.assertEqual(read_line(target), "done")
        target.stdin.close()
        self.assertEqual(self.finish(mleak).status, 0)
        self.assertEqual(self.sizes(self.events(self.dump(trace))), {40: 3, 41: 4, 42: 5})

    def test_a_site_by_its_address(self):
        """The address that a recorded stack begins with is the one that the call returns to."""
        target, tids = self.target_with_threads(2)
        mleak, trace = self.attach(target, "--choose", "recorded")
        self.tell(target, "1 threads 1")
        self.tell(target, "1 keep 1 77")
        wait_until(lambda: len([s for s in self.leaf_addresses(trace)]) >= 3, "nothing is recorded")
        address = self.leaf_addresses(trace)[77]
        self.ctl(target.pid, "--thread", "all=counted", "--site", address)
        self.tell(target, "1 keep 9 78")
        self.tell(target, "1 threads 5")
        self.end(target, mleak)
        sizes = collections.Counter(e.size for e in self.events(self.dump(trace)) if e.kind == "ALLOC")
        self.assertEqual((sizes[78], sizes[24]), (9, 2))

    def leaf_addresses(self, trace):
        """Where the recorded calls returned to, by the sizes of blocks: rip, the last register."""
        found = re.findall(r"^  ALLOC .*, size (\d+), .*, regs ([0-9a-f ]+), stack", self.dump(trace), re.M)
        return {int(size): "0x" + regs.split()[16] for size, regs in found}

    def test_more_sites_than_there_is_room_for(self):
        target, _ = self.target_with_threads(1)
        mleak, _ = self.attach(target, "--choose", "recorded")
        self.ctl(target.pid, *(word for i in range(16) for word in ("--site", "0x%x" % (4096 + i))))
        self.ctl(target.pid, "--site", "0x1001=counted")  # it is one of them
        self.refused("16 sites of process", target.pid, "--site", "0x9999")
        self.end(target, mleak)

    def test_triggers_change(self):
        target, tids = self.target_with_threads(3)
        mleak, trace = self.attach(target, "--trigger", "1G")
        self.tell(target, "1 keep 10 1000")
        self.ctl(target.pid, "--trigger", "12000")
        self.tell(target, "1 keep 10 1001")  # with the second the thread has 12,002
        self.ctl(target.pid, "--trigger", "none")
        self.tell(target, "2 keep 100 1002")
        self.refused("record with --trigger site:BYTES", target.pid, "--trigger", "site:1M")
        self.refused("bytes from 1 on", target.pid, "--trigger", "much")
        self.end(target, mleak)
        self.assertEqual(self.sizes_by_thread(trace), {tids[1]: {1001: 9}})

    def test_what_reached_a_trigger_can_be_held(self):
        target, tids = self.target_with_threads(2)
        mleak, trace = self.attach(target, "--trigger", "1000")
        self.tell(target, "1 keep 3 1001")
        self.ctl(target.pid, "--thread", "%d=counted" % tids[1])
        self.tell(target, "1 keep 3 1002")
        self.ctl(target.pid, "--process", "%d=counted" % target.pid, "--thread", "all=counted",
                 "--process", "%d=counted" % target.pid)
        self.tell(target, "1 keep 3 1003")
        self.end(target, mleak)
        self.assertEqual(self.sizes_by_thread(trace), {tids[1]: {1001: 3}})

    def test_the_next_trace_says_that_something_was_chosen(self):
        target, tids = self.target_with_threads(2)
        mleak = self.start_mleak("record", "--choose", "recorded", "--switch-output=signal", "-o",
                                 self.path("x.mlk"), "-p", str(target.pid))
        wait_until(lambda: os.path.exists(self.path("x.mlk.1")), "nothing is attached")
        self.ctl(target.pid, "--thread", "%d=counted" % tids[1], "--switch")
        self.wait_for_words(mleak, "wrote '.*x.mlk.1'")
        self.tell(target, "1 keep 5 101")
        self.tell(target, "0 keep 5 102")
        self.end(target, mleak)
        marks = [re.findall(r"(?m)^mark +\d+ \S+ change (.*)$", self.mleak("info", self.path(name)).out)
                 for name in ("x.mlk.1", "x.mlk.2")]
        self.assertEqual(marks, [["thread %d=counted" % tids[1]], ["as chosen in the traces before"]])
        self.assertEqual(self.sizes_by_thread(self.path("x.mlk.2")), {tids[0]: {102: 5}})

    def test_without_a_choice_nothing_can_be_chosen(self):
        target, tids = self.target_with_threads(1)
        mleak, _ = self.attach(target)
        self.refused("record with --choose, --trigger or --tid", target.pid, "--thread", str(tids[0]))
        self.refused("record with --switch-output", target.pid, "--switch")
        self.assertRegex(self.ctl(target.pid), r"(?m)^recorded +all of 1 thread$")
        self.end(target, mleak)


@needs_bpf
class AskTest(ChosenCase):
    """Who may ask, and what harm asking can do."""

    def recorded(self, *options):
        target, tids = self.target_with_threads(1)
        return target, *self.attach(target, *options)

    def connect(self, pid):
        client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.addCleanup(client.close)
        client.settimeout(30)
        client.connect("\0" + listeners(pid)[0])
        return client

    def test_status(self):
        target, mleak, trace = self.recorded()
        self.tell(target, "0 keep 50 100")
        self.tell(target, "0 drop 20")

        def seen():
            found = dict(re.findall(r"(?m)^(\S+) +(.*)$", self.ctl(target.pid, "--status")))
            return found if (found["allocations"], found["frees"]) == ("50", "20") else None
        wait_until(seen, "the status has not what was allocated")
        found = seen()
        self.assertEqual(found["process"], "%d target, 1 thread" % target.pid)
        self.assertRegex(found["recorder"], "^%d, bpf uprobes, for" % mleak.pid)
        self.assertIn(trace, found["trace"])
        self.assertEqual(found["lost"], "0")
        self.end(target, mleak)

    def test_wrong_numbers(self):
        target, mleak, _ = self.recorded()
        ended = self.spawn(["true"])
        ended.wait()
        self.refused("there is no process %d" % ended.pid, ended.pid)
        self.refused("is no recorder that can be asked", os.getpid())
        self.refused("is no number of a process", "target")
        self.refused("give the number of a recorder")
        self.refused("give one process", target.pid, mleak.pid)
        self.end(target, mleak)
        self.refused("there is no process %d" % mleak.pid, mleak.pid)
        self.assertEqual(listeners(mleak.pid), [])

    def test_a_killed_recorder_leaves_nothing(self):
        target, mleak, _ = self.recorded()
        self.assertEqual(len(listeners(mleak.pid)), 1)
        mleak.kill()
        mleak.wait()
        wait_until(lambda: not listeners(mleak.pid), "a socket is left")
        self.refused("is no recorder that can be asked", target.pid)

    def test_another_user_is_refused(self):
        if os.geteuid():
            self.skipTest("only root can be another user")
        target, mleak, trace = self.recorded("--choose", "recorded")
        self.refused("recorder %d is of user 0" % mleak.pid, mleak.pid, "--thread", "all=counted",
                     **AS_NOBODY)
        self.refused("is one of user 0", target.pid, **AS_NOBODY)
        # Without our client, too.
        asked = subprocess.run(
            ["python3", "-c", "import socket, sys\n"
             "s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
             "s.connect('\\0' + sys.argv[1])\n"
             "print(s.recv(1000).decode())\n"
             "try: s.send(b'all counted')\nexcept OSError: pass\n", listeners(mleak.pid)[0]],
            stdout=subprocess.PIPE, text=True, cwd="/", **AS_NOBODY)
        self.assertIn("no only the recorder's user and root may ask it", asked.stdout)
        self.tell(target, "0 keep 10 101")
        self.end(target, mleak)
        self.assertEqual(self.sizes(self.events(self.dump(trace))), {101: 10})

    def test_hostile_bytes_do_no_harm(self):
        target, mleak, trace = self.recorded("--choose", "recorded")
        client = self.connect(mleak.pid)
        lines = [b"\0", b"all", b"all counted ", b"all counted\0", b"all counted\n", b"x" * 400, b"x" * 100000,
                 b"thread 0 counted", b"thread -1 counted", b"thread 99999999999 counted", b"thread  1 counted",
                 b"site %d ffffffffffffffff ffffffffffffffff counted" % target.pid, b"site 1 1 1 counted",
                 b"trigger thread 0", b"trigger all 5", b"trigger thread 99999999999999999999", b"mark " + b"y" * 201,
                 b"mark \x1b[2J", b"MARK", b"status now", b"\xff" * 300, b"records", b"process 1 recorded"]
        for line in lines:
            client.send(line)
            self.assertTrue(client.recv(10000).startswith(b"no "), line)
        self.assertEqual(client.send(b"mark \xff\xc3\x28"), 8)
        self.assertTrue(client.recv(10000).startswith(b"ok "))
        client.close()
        self.tell(target, "0 keep 10 101")
        self.end(target, mleak)
        self.assertEqual(self.sizes(self.events(self.dump(trace))), {101: 10})
        self.assertEqual(self.mleak("info", trace).out.count("\nmark "), 1)

    def test_a_silent_client_and_one_that_does_not_read(self):
        """They are dropped, and the next is heard; the recorder records meanwhile."""
        target, mleak, trace = self.recorded()
        silent = self.connect(mleak.pid)
        deaf = self.connect(mleak.pid)
        deaf.setblocking(False)
        try:
            for _ in range(100000):
                deaf.send(b"status")
        except BlockingIOError:
            pass
        before = time.monotonic()
        self.tell(target, "0 keep 10 101")
        self.ctl(target.pid, "--mark", "heard")
        self.assertLess(time.monotonic() - before, 30)
        for dropped in silent, deaf:
            with self.assertRaises(ConnectionError):
                dropped.send(b"status")
        self.end(target, mleak)
        self.assertEqual(self.sizes(self.events(self.dump(trace))), {101: 10})

    def test_two_clients_at_once(self):
        target, mleak, trace = self.recorded()
        asked = [self.start_mleak("ctl", str(target.pid), *["--mark", "from %d" % i] * 8) for i in range(4)]
        for process in asked:
            result = self.finish(process)
            self.assertEqual((result.status, result.err), (0, ""))
        self.end(target, mleak)
        info = self.mleak("info", trace).out
        for i in range(4):
            self.assertEqual(info.count(" text from %d\n" % i), 8)

    def test_two_recorders_of_one_process_are_told_apart(self):
        target, first, trace = self.recorded("--choose", "recorded")
        other = self.start_mleak("record", "-o", self.path("y.mlk"), "-p", str(target.pid))
        wait_until(lambda: os.path.exists(self.path("y.mlk")), "nothing is attached")
        result = self.mleak("ctl", str(target.pid), "--mark", "here")
        self.assertEqual(result.status, 2)
        self.assert_one_message(result.err, "both record process %d" % target.pid)
        self.assertIn(str(first.pid), result.err)
        self.assertIn(str(other.pid), result.err)
        self.ctl(other.pid, "--mark", "here")
        self.end(target, first)
        self.assertEqual(self.finish(other).status, 0)
        self.assertNotIn("\nmark ", self.mleak("info", trace).out)
        self.assertIn(" text here\n", self.mleak("info", self.path("y.mlk")).out)

    def test_a_stopped_recorder(self):
        target, mleak, _ = self.recorded()
        mleak.send_signal(signal.SIGSTOP)
        self.refused("does not answer: it is stopped", mleak.pid)
        mleak.send_signal(signal.SIGCONT)
        self.end(target, mleak)
