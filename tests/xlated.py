"""xlated - BPF programs as the kernel translated them: read back, and run here to count instructions.

The programs come from the links of a running process; their maps are read from the kernel.  Helpers
are not run but stand for the case where all goes well: memory can be read, the ring has room.
"""

import ctypes
import os
import re
import shutil
import struct
import subprocess

MASK64 = (1 << 64) - 1
MASK32 = (1 << 32) - 1
STACK_TOP = 0x7000_0000_0000
RING = 0x7100_0000_0000
STATE = 0x7200_0000_0000
TASK = 0x7300_0000_0000
MAP_VALUES = 0x7400_0000_0000
CONTEXT = 0x7500_0000_0000
FUNCTION = 0x5555_0000_2000  # the function whose entry is probed
SYS_BPF = 321  # x86-64
BPF_MAP_LOOKUP_ELEM, BPF_MAP_GET_FD_BY_ID = 1, 14
SLOTS, SLOT_BYTES, SLOT_SHIFT = 4096, 256, 14  # bpf/state.h

# Offsets in struct pt_regs of x86-64.
REGS = {"rbp": 32, "rax": 80, "rdx": 96, "rsi": 104, "rdi": 112, "rip": 128, "rsp": 152}


def bpftool(*args):
    path = shutil.which("bpftool", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    return subprocess.run([path, *args], capture_output=True, text=True, check=True).stdout


def linked(pid):
    """The uprobe_multi links of process @pid: [(kind, program's id, attach cookies)]."""
    found = []
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        try:
            with open("/proc/%d/fdinfo/%s" % (pid, fd)) as info:
                text = info.read()
        except OSError:
            continue  # closed meanwhile
        kind = re.search(r"^link_type:\s+(u(?:ret)?probe_multi)$", text, re.M)
        if kind:
            number = int(re.search(r"^prog_id:\s+(\d+)$", text, re.M)[1])
            found.append((kind[1], number, re.findall(r"^(\d+)\s+0x[0-9a-f]+\s", text, re.M)))
    return found


def syscall_bpf(command, attr):
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(SYS_BPF, command, attr, len(attr))
    if result < 0:
        raise OSError(ctypes.get_errno(), "bpf(%d)" % command)
    return result


def map_value(number, key):
    """The value for @key, a 32-bit number, of the map with id @number; None: there is none."""
    size = int(re.search(r"value (\d+)B", bpftool("map", "show", "id", str(number)))[1])
    fd = syscall_bpf(BPF_MAP_GET_FD_BY_ID, struct.pack("<II8x", number, 0))
    key_bytes = ctypes.create_string_buffer(struct.pack("<I", key), 4)
    value = ctypes.create_string_buffer(size + 8)
    try:
        syscall_bpf(BPF_MAP_LOOKUP_ELEM, struct.pack(
            "<I4xQQQ", fd, ctypes.addressof(key_bytes), ctypes.addressof(value), 0))
    except OSError:
        return None
    finally:
        os.close(fd)
    return value.raw[:size]


class Instruction:
    def __init__(self, raw, text):
        self.opcode, registers, self.offset, self.imm = struct.unpack("<BBhi", raw)
        self.dst, self.src = registers & 15, registers >> 4
        self.text = text
        self.kind = self.opcode & 7

    def is_jump(self):
        return self.kind in (5, 6) and self.opcode >> 4 not in (8, 9)

    def is_always(self):
        """An unconditional jump: ja, or gotol, whose distance is the 32-bit number."""
        return self.opcode in (0x05, 0x06)

    def target(self, at):
        return at + 1 + (self.imm if self.opcode == 0x06 else self.offset)


def program(number):
    """The instructions of the program with id @number; the second half of a wide one is None."""
    text = bpftool("prog", "dump", "xlated", "id", str(number), "opcodes")
    found = {}
    for index, line, code in re.findall(r"^ *(\d+): (\(.*)\n +((?:[0-9a-f]{2} ?){8,16})", text, re.M):
        raw = bytes.fromhex(code)
        found[int(index)] = Instruction(raw[:8], line)
        if len(raw) == 16:
            found[int(index) + 1] = struct.unpack_from("<i", raw, 12)[0]
    return [found[i] for i in range(len(found))]


def following(code, at):
    """Indexes of the instructions that may be executed after the one at @at, in the same function."""
    insn = code[at]
    if insn.opcode == 0x95:
        return []
    after = at + (2 if insn.opcode == 0x18 else 1)
    if not insn.is_jump():
        return [after]
    return [insn.target(at)] if insn.is_always() else [after, insn.target(at)]


def longest_path(code):
    """Instructions on the longest way from the first one to an exit that runs no loop twice and
    leaves out functions that it calls; and the jumps that close loops."""
    length, on_way, loops = {}, {0}, set()
    way = [(0, iter(following(code, 0)))]
    length[0] = 1
    while way:
        at, rest = way[-1]
        to = next(rest, None)
        if to is None:
            on_way.discard(at)
            way.pop()
            if way:
                before = way[-1][0]
                length[before] = max(length[before], 1 + length[at])
        elif to in on_way:
            loops.add(at)
        elif to in length:
            length[at] = max(length[at], 1 + length[to])
        else:
            length[to] = 1
            on_way.add(to)
            way.append((to, iter(following(code, to))))
    return length[0], sorted(loops)


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


class Machine:
    """Memory and helpers, which stay as they are from one program's run to the next."""

    def __init__(self, pid, tid, cookie):
        self.memory = {}
        self.id = pid << 32 | tid
        self.tid = tid
        self.cookie = cookie
        self.maps = {}
        self.calls = []
        self.reserved = 0

    def read(self, address, size):
        return int.from_bytes(bytes(self.memory.get(address + i, 0) for i in range(size)), "little")

    def write(self, address, value, size):
        for i in range(size):
            self.memory[address + i] = value >> 8 * i & 255

    def put(self, address, data):
        for i, byte in enumerate(data):
            self.memory[address + i] = byte

    def value_of_map(self, number):
        """Where the only value of the array with id @number stands."""
        if number not in self.maps:
            self.maps[number] = MAP_VALUES + (len(self.maps) << 32)
            self.put(self.maps[number], map_value(number, 0) or b"")
        return self.maps[number]

    def thread_state(self, number):
        if number not in self.maps:
            self.maps[number] = STATE + (len(self.maps) << 24)
            pidfd = self.pidfd_of_thread()
            value = map_value(number, pidfd)
            os.close(pidfd)
            if value is None:
                raise KeyError("the thread has no state yet: let it allocate first")
            self.put(self.maps[number], value)
        return self.maps[number]

    def pidfd_of_thread(self):
        thread_flag = os.O_EXCL  # PIDFD_THREAD, Linux 6.9
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.syscall(434, self.tid, thread_flag)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "pidfd_open")
        return fd

    def context_of(self, code):
        """Where this thread's registers stand for @code: the slot of its state in bpf/state.h says
        how far that is from the slots, for so it is found."""
        for number in {insn.imm for insn in code if isinstance(insn, Instruction) and
                       insn.opcode == 0x18 and insn.src == 2}:
            base = self.value_of_map(number)
            value = map_value(number, 0) or b""
            at = value.find(struct.pack("<Q", self.id))
            if at >= 0:
                slot = at - at % SLOT_BYTES
                owner = struct.unpack_from("<Q", value, slot)[0]
                index = owner >> SLOT_SHIFT & (SLOTS - 1)
                return base + slot - index * SLOT_BYTES + owner & MASK64
        return CONTEXT

    def helper(self, name, r):
        self.calls.append(name)
        if name.startswith("bpf_get_current_pid_tgid"):
            return self.id
        if "attach_cookie" in name:
            return self.cookie
        if "get_func_ip" in name:
            return FUNCTION
        if "get_current_task" in name:
            return TASK
        if "task_storage_get" in name:
            return self.thread_state(r[1])
        if "ringbuf_reserve" in name:
            self.reserved = r[2]
            return RING
        if "ringbuf_query" in name or "ringbuf_submit" in name or "probe_read" in name:
            return 0
        if "ktime" in name or "get_prandom" in name:
            return 1
        raise NotImplementedError("no stand-in for the helper " + name)

    def run(self, code, registers):
        """Run @code with @registers in struct pt_regs; how often each instruction was executed."""
        context = self.context_of(code)
        for name, value in registers.items():
            self.write(context + REGS[name], value, 8)
        return Run(self, code, context).run()


class Run:
    """One run of a program."""

    def __init__(self, machine, code, context):
        self.machine = machine
        self.code = code
        self.r = [0] * 11
        self.r[1], self.r[10] = context, STACK_TOP
        self.times = {}
        self.callers = []
        self.at = 0

    def run(self):
        while self.at is not None:
            self.times[self.at] = self.times.get(self.at, 0) + 1
            self.step(self.code[self.at])
        return self.times

    def step(self, insn):
        at = self.at
        self.at += 1
        if insn.opcode == 0x18:
            self.at += 1
            self.load_wide(insn, self.code[at + 1])
        elif insn.opcode == 0x85:
            self.call(insn, at)
        elif insn.opcode == 0x95:
            self.leave()
        elif insn.is_jump():
            if insn.is_always() or self.condition(insn):
                self.at = insn.target(at)
        elif insn.kind in (4, 7):
            self.arithmetic(insn)
        else:
            self.access(insn)

    def load_wide(self, insn, high):
        if insn.src == 1:  # a map
            self.r[insn.dst] = insn.imm
        elif insn.src == 2:  # a place in a map's value
            self.r[insn.dst] = self.machine.value_of_map(insn.imm) + (high & MASK32)
        else:
            self.r[insn.dst] = (insn.imm & MASK32) | (high & MASK32) << 32

    def call(self, insn, at):
        if insn.src == 1:
            self.callers.append((at + 1, self.r[6:]))
            self.r[10] -= 512
            # Of a program that was compiled the number is an address; bpftool shows the distance.
            self.at = at + 1 + int(re.search(r"call pc([+-]\d+)", insn.text)[1])
            return
        name = insn.text.split("call ")[1].split("#")[0].strip()
        self.r[0] = self.machine.helper(name, self.r) & MASK64

    def leave(self):
        if not self.callers:
            self.at = None
            return
        self.at, saved = self.callers.pop()
        self.r[6:] = saved

    def operand(self, insn, bits):
        value = self.r[insn.src] if insn.opcode & 8 else insn.imm
        return value & ((1 << bits) - 1)

    def condition(self, insn):
        bits = 64 if insn.kind == 5 else 32
        a, b = self.r[insn.dst] & ((1 << bits) - 1), self.operand(insn, bits)
        sa, sb = signed(a, bits), signed(b, bits)
        return {1: a == b, 2: a > b, 3: a >= b, 4: a & b != 0, 5: a != b, 6: sa > sb, 7: sa >= sb,
                10: a < b, 11: a <= b, 12: sa < sb, 13: sa <= sb}[insn.opcode >> 4]

    def arithmetic(self, insn):
        bits = 64 if insn.kind == 7 else 32
        a, b = self.r[insn.dst] & ((1 << bits) - 1), self.operand(insn, bits)
        shift = b & (bits - 1)
        result = {0: lambda: a + b, 1: lambda: a - b, 2: lambda: a * b,
                  3: lambda: a // b if b else 0, 4: lambda: a | b, 5: lambda: a & b,
                  6: lambda: a << shift, 7: lambda: a >> shift, 8: lambda: -a,
                  9: lambda: a % b if b else a, 10: lambda: a ^ b, 11: lambda: b,
                  12: lambda: signed(a, bits) >> shift}[insn.opcode >> 4]()
        self.r[insn.dst] = result & ((1 << bits) - 1)

    def access(self, insn):
        size = {0x00: 4, 0x08: 2, 0x10: 1, 0x18: 8}[insn.opcode & 0x18]
        machine = self.machine
        if insn.kind == 1:
            self.r[insn.dst] = machine.read(self.r[insn.src] + insn.offset, size)
            return
        address = self.r[insn.dst] + insn.offset
        if insn.opcode & 0xe0 == 0xc0:  # atomic: add, add and fetch, exchange
            old = machine.read(address, size)
            if insn.imm not in (0, 1, 0xe1):
                raise NotImplementedError(insn.text)
            new = self.r[insn.src] if insn.imm == 0xe1 else old + self.r[insn.src]
            machine.write(address, new, size)
            if insn.imm & 1:
                self.r[insn.src] = old
        else:
            machine.write(address, self.r[insn.src] if insn.kind == 3 else insn.imm, size)
