"""boot - one guest under QEMU: boots a kernel with an image, runs a command there, reads what it prints"""

import os
import re
import shutil
import signal
import subprocess
import tempfile

# The clock is the kernel's choice then: hpet, which a guest of QEMU has, unless it is told to trust the tsc.
TRUST_TSC = "tsc=reliable"
OPTIONS = ("console=ttyS0 quiet loglevel=4 panic=-1 mitigations=off nokaslr no_timer_check nowatchdog "
           "rcupdate.rcu_cpu_stall_suppress=1 random.trust_cpu=on rdinit=/init")
MEMORY_MB = 3072


def has_kvm():
    """Whether the processor's own virtualisation can be used; a device alone says nothing."""
    with open("/proc/cpuinfo") as info:
        flags = re.search(r"^flags\s*:(.*)$", info.read(), re.M)
    return bool(flags and {"vmx", "svm"} & set(flags[1].split())) and os.access("/dev/kvm", os.R_OK | os.W_OK)


class Guest:
    """A machine that runs @script, a text for sh, once and ends."""

    def __init__(self, qemu, kernel, image, script, options="", log=None):
        self.folder = tempfile.mkdtemp(prefix="mleak-guest-", dir="/var/tmp")
        self.result = os.path.join(self.folder, "result")
        self.log = log or os.path.join(self.folder, "console")
        initrd = os.path.join(self.folder, "initrd")
        shutil.copy(image, initrd)
        with open(os.path.join(self.folder, "run.sh"), "w") as out:
            out.write(script)
        with open(initrd, "ab") as archive:
            subprocess.run(["cpio", "--create", "--format=newc", "--null", "--quiet", "--owner=+0:+0"],
                           input=b"run.sh\0", stdout=archive, cwd=self.folder, check=True)
        accel = ["-accel", "kvm", "-cpu", "host"] if has_kvm() else \
            ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
        self.process = subprocess.Popen(
            [*qemu, "-machine", "q35", *accel, "-smp", "2", "-m", str(MEMORY_MB), "-display", "none",
             "-no-reboot", "-nodefaults", "-no-user-config", "-serial", "file:" + self.log, "-serial", "file:" + self.result,
             "-kernel", kernel, "-initrd", initrd, "-append", "%s %s" % (OPTIONS, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def wait(self, timeout):
        """Wait for its end, @timeout seconds at most; returns what the script printed, with its exit status
        (None: it did not come to its end) and what the console said."""
        try:
            said, _ = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.end()
            said = b"ended after %d s\n" % timeout
        text = self.read(self.result)
        found = re.search(r"^exit status (\d+)$", text, re.M)
        return text, int(found[1]) if found else None, said.decode(errors="replace") + self.read(self.log)

    def read(self, path):
        try:
            with open(path, "rb") as out:
                return out.read().decode(errors="replace").replace("\r", "")
        except OSError:
            return ""

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def release(self):
        self.end()
        shutil.rmtree(self.folder, ignore_errors=True)
