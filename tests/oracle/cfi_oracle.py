"""cfi_oracle - compare our call frame information with libdw's and with readelf's"""

import os
import re
import subprocess

ROW = re.compile(r"^([0-9a-f]{16}) (\S+(?:\+\d+|-\d+)?)\s+(.*)$")
REGISTER = re.compile(r"r\d+ \((\w+)\)")  # a register that holds another: number and name
TALLY = re.compile(r"^rows (\d+) differences (\d+) refused (\d+) FDEs (\d+) unread (\d+) (.*)$")
ELF = b"\x7fELF\x02\x01"


class Differs(Exception):
    """Ours is not theirs."""


def is_elf(path):
    """Whether @path is a regular file, no link, that may be an ELF file of x86-64."""
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        head = file.read(20)
    return head[:6] == ELF and head[16:20] in (b"\2\0\x3e\0", b"\3\0\x3e\0")


def compare_with_libdw(tools, paths):
    """(path, rows, differences, refused, FDEs, unread) of each of @paths that has .eh_frame, and all
    other text that was printed."""
    run = subprocess.run([os.path.join(tools, "cfi_rows"), *paths], stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, errors="replace", check=False)
    tallies, rest = [], []
    for line in run.stdout.splitlines():
        found = TALLY.match(line)
        if found:
            tallies.append((found[6], *(int(found[i]) for i in range(1, 6))))
        else:
            rest.append(line)
    if run.returncode not in (0, 1):
        rest.append("cfi_rows ended with status %d" % run.returncode)
    return tallies, rest


def readelf_rows(path):
    """{address: (CFA, {register: rule})} by readelf.  An address that two FDEs have a row for is left
    out."""
    text = subprocess.run(["readelf", "--debug-dump=frames-interp", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, errors="replace", check=False).stdout
    rows, twice, columns, is_fde = {}, set(), [], False
    for line in text.splitlines():
        if " FDE " in line or " CIE " in line or "ZERO terminator" in line:
            # A row of a CIE is for no address.  An FDE of no bytes covers none.
            limits = re.search(r"pc=([0-9a-f]+)\.\.([0-9a-f]+)", line)
            is_fde = limits is not None and limits[1] != limits[2]
            end = int(limits[2], 16) if limits else 0
        elif line.lstrip().startswith("LOC"):
            columns = line.split()[2:]
        else:
            found = ROW.match(line)
            if not found or not is_fde:
                continue
            addr = int(found[1], 16)
            rules = dict(zip(columns, REGISTER.sub(r"\1", found[3]).split()))
            if addr in rows:
                twice.add(addr)
            if addr < end:
                rows[addr] = (found[2], rules)
    return {addr: row for addr, row in rows.items() if addr not in twice}


def our_rows(tools, path, addrs):
    """The same by ours, of @addrs; None where there is nothing."""
    run = subprocess.run([os.path.join(tools, "cfi_at"), path], stdout=subprocess.PIPE, check=True,
                         input="".join("%x\n" % a for a in addrs), encoding="ascii")
    rows = {}
    for line in run.stdout.splitlines():
        addr, cfa, *rules = line.split()
        rows[int(addr, 16)] = None if cfa == "none" else (
            cfa, dict(rule.split("=") for rule in rules))
    return rows


def compare_with_readelf(tools, path, of=None):
    """Compare all rows of @path with those that readelf has of @of, or of the same file.  Returns
    their number; raises Differs for the first that is another."""
    theirs = readelf_rows(of or path)
    ours = our_rows(tools, path, theirs)
    for addr, (cfa, rules) in theirs.items():
        mine = ours.get(addr)
        if mine is None:
            raise Differs("%s: %x: ours: nothing, readelf: %s" % (path, addr, cfa))
        if mine[0] != cfa:
            raise Differs("%s: %x: CFA: ours %s, readelf %s" % (path, addr, mine[0], cfa))
        for reg, rule in rules.items():
            if mine[1].get(reg, "u") != rule:
                raise Differs("%s: %x: %s: ours %s, readelf %s" %
                              (path, addr, reg, mine[1].get(reg, "u"), rule))
    return len(theirs)
