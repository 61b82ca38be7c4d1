"""Lines of the running kernel: with a file at hand that has its build-id, and its functions where
/proc/kallsyms says, though with other contents."""

import json
import os
import re
import signal

from forge_kernel import KERNEL
from mleaktest import Case, needs_bpf, wait_until
from symbolstest import run

PIPES = 101


def kernel_symbols():
    """(address, name) of all of the kernel's own, ascending."""
    with open("/proc/kallsyms") as lines:
        found = [line.split() for line in lines]
    return sorted((int(words[0], 16), words[2]) for words in found if len(words) == 3)


def build_id():
    """Of the running kernel, in hexadecimal."""
    with open("/sys/kernel/notes", "rb") as notes:
        found = re.search(b"\x14\0\0\0\3\0\0\0GNU\0(.{20})", notes.read(), re.S)
    return found and found[1].hex()


@needs_bpf
class RunningKernelTest(Case):
    def setUp(self):
        super().setUp()
        self.build_id = build_id()
        if not self.build_id:
            self.skipTest("this kernel has no build-id")

    def record_pipes(self, signo=signal.SIGINT):
        """A trace in which this process makes pipes, until @signo ends the recorder."""
        with open("/proc/self/comm") as comm:
            recorder = self.start_mleak("record", "--kernel", "--comm", comm.read().strip(), "-o", "x.mlk")
        trace = self.path("x.mlk")
        # When it has looked at the blocks for the first time, it writes what it left out.
        wait_until(lambda: recorder.poll() is not None or os.path.exists(trace) and
                   "LOSSES" in self.mleak("report", "--dump", trace).out, "nothing is recorded")
        for end in [end for _ in range(PIPES) for end in os.pipe()]:
            self.addCleanup(os.close, end)
        wait_until(lambda: recorder.poll() is not None or
                   self.allocated(trace) >= 2 * PIPES, "the pipes are not written")
        recorder.send_signal(signo)
        result = self.finish(recorder)
        self.assertEqual(result.status, -signo if signo == signal.SIGKILL else 0, result.err)
        return trace

    def allocated(self, trace):
        return len(re.findall(r"^ +ALLOC ", self.mleak("report", "--dump", trace).out, re.M))

    def places(self, trace, *options):
        """{function: {(file, line)}} of the kernel's functions in the report."""
        report, found = json.loads(self.mleak("report", "--format=json", *options, trace).out), {}
        for frame in report["frames"]:
            if frame["module"] == "[kernel]":
                place = os.path.basename(frame["file"]), frame["line"]
                found.setdefault(frame["function"], set()).add(place)
        return found

    def build_stand_in(self, names):
        """A file with the functions @names; the line of each."""
        symbols = kernel_symbols()
        text = next(address for address, name in symbols if name == "_text")
        flags, lines, source = [], {}, ""
        for name in names:
            start = next(address for address, found in symbols if found == name)
            size = min(address for address, _ in symbols if address > start) - start
            source += ('__attribute__((naked, section(".of.%s"))) void %s(void) { asm(".skip %d"); }\n' %
                       (name, name, size - 2))  # and ud2
            lines[name] = len(lines) + 1
            flags.append("-Wl,--section-start=.of.%s=0x%x" % (name, start - text + KERNEL))
        self.write("kernel.c", source.encode())
        run("gcc", "-g", "-O2", "-ffreestanding", "-nostdlib", "-static", "-fno-pic", "-mcmodel=kernel",
            "-fcf-protection=none", "-Wl,--defsym=_text=0x%x" % KERNEL, "-Wl,-e,0",
            "-Wl,--build-id=0x" + self.build_id, *flags, "-o", "vmlinux", "kernel.c", cwd=self.dir)
        return lines

    def test_functions_have_the_lines_of_a_file_of_the_same_build(self):
        trace = self.record_pipes()
        recorded = self.places(trace)
        self.assertEqual(set().union(*recorded.values()), {("", 0)})
        # Names that C knows, and that only one function has.
        symbols = [name for _, name in kernel_symbols()]
        chosen = [name for name in sorted(recorded)
                  if re.fullmatch(r"\w+", name) and symbols.count(name) == 1][:12] + ["do_syscall_64"]
        lines = self.build_stand_in(sorted(set(chosen)))
        found = self.places(trace, "--vmlinux", self.path("vmlinux"))
        self.assertEqual(set(found), set(recorded))
        for name, places in found.items():
            self.assertEqual(places, {("kernel.c", lines[name]) if name in lines else ("", 0)}, name)

    def test_a_recording_that_was_killed_has_names_from_there(self):
        trace = self.record_pipes(signal.SIGKILL)
        self.assertEqual([name for name in self.places(trace) if "+0x" not in name], [])
        lines = self.build_stand_in(["do_syscall_64"])
        found = self.places(trace, "--vmlinux", self.path("vmlinux"))
        self.assertEqual({name: places for name, places in found.items() if "+0x" not in name},
                         {name: {("kernel.c", line)} for name, line in lines.items()})


del Case
