"""Names, lines and inlined calls against elfutils' eu-addr2line and LLVM's symbolizer.

Where the two differ from each other, libdwunw must agree with one of them; that is counted, too.
"""

import collections
import os
import random
import re
import shutil
import unittest

from symbolstest import (SymbolsTest, binutils_addr2line, eu_addr2line, functions, llvm_addr2line,
                         run, symbolize)

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
DEBUG = "/usr/lib/debug"

CXX_SOURCE = """#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>
namespace shop {
template <typename T> struct Shelf {
	std::vector<T> things;
	template <typename U> void put(U &&thing) { things.push_back(T(thing)); }
	auto find(const T &t) { return std::find(things.begin(), things.end(), t); }
};
namespace {
struct Clerk {
	std::map<std::string, std::shared_ptr<Shelf<std::string>>> shelves;
	void sort(const std::string &name) {
		auto &things = shelves[name]->things;
		std::sort(things.begin(), things.end(), [](auto &a, auto &b) { return a.size() < b.size(); });
	}
};
}
long work(const char *name) {
	Clerk clerk;
	clerk.shelves[name] = std::make_shared<Shelf<std::string>>();
	for (int i = 0; i < 100; i++)
		clerk.shelves[name]->put(std::to_string(i));
	clerk.sort(name);
	return clerk.shelves[name]->find("42") - clerk.shelves[name]->things.begin();
}
}
int main(int, char **argv) { return shop::work(argv[0]) == 42; }
"""


def instructions(path):
    """Addresses of the instructions of all functions that have a symbol."""
    found = []
    spans = sorted(set(functions(path).values()))
    text = run("objdump", "-d", "--no-show-raw-insn", path)
    addresses = sorted(int(a, 16) for a in re.findall(r"^ +([0-9a-f]+):", text, re.M))
    at = 0
    for start, size in spans:
        while at < len(addresses) and addresses[at] < start:
            at += 1
        while at < len(addresses) and addresses[at] < start + size:
            found.append(addresses[at])
            at += 1
    return found


def demangled(names):
    """@names as c++filt has them, without hashes of Rust."""
    names = sorted(names)
    return dict(zip(names, run("c++filt", "-i", stdin="\n".join(names) + "\n").splitlines()))


def tail(path):
    """A path without what depends on how it is joined with the directory of the compilation."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    while ".." in parts:
        at = parts.index("..")
        del parts[max(at - 1, 0):at + 1]
    return parts


def same_place(ours, theirs, names, innermost_frame):
    if theirs.line != ours.line:
        return False
    if not ours.line:
        return True
    if not innermost_frame and names.get(theirs.function, theirs.function) != ours.function:
        return False
    a, b = tail(ours.path), tail(theirs.path)
    return a[-2:] == b[-len(a[-2:]):]


def same(ours, theirs, names):
    """The last is the function itself, which is checked by symbols(): here only its place counts."""
    return len(ours) == len(theirs) and all(
        same_place(a, b, names, i == len(ours) - 1) for i, (a, b) in enumerate(zip(ours, theirs)))


class OracleTest(SymbolsTest):
    def compare(self, program, debug, addresses, *dirs, elfutils=True):
        """Returns Counter of who agrees, by address."""
        ours, notes = symbolize(program, addresses, *dirs)
        self.assertEqual(notes, [])
        llvm = llvm_addr2line(debug, addresses)
        eu = eu_addr2line(debug, addresses) if elfutils else llvm
        self.assertEqual((len(ours), len(eu), len(llvm)), (len(addresses),) * 3)
        names = demangled({place.function for places in eu + llvm for place in places})
        count, wrong = collections.Counter(), []
        for address, name, a, b in zip(addresses, ours, eu, llvm):
            agree = same(name.places, a, names), same(name.places, b, names)
            count["both" if all(agree) else "eu" if agree[0] else "llvm" if agree[1] else "none"] += 1
            if not any(agree):
                wrong.append("%x: %s\n  eu   %s\n  llvm %s" % (address, name, a, b))
        self.binutils(debug, addresses, ours, count)
        print("# %s: %s" % (os.path.basename(program), dict(count)))
        self.assertEqual(wrong[:5], [], "%d of %d" % (len(wrong), len(addresses)))
        self.symbols(program, debug, addresses, ours)
        return count, ours

    def binutils(self, debug, addresses, ours, count):
        """Lines alone: addr2line 2.40 mixes up files and names of inlined functions, and finds not
        all of these in programs of clang."""
        lines = lambda places: [place.line for place in places]
        for address, name, theirs in zip(addresses, ours, binutils_addr2line(debug, addresses)):
            self.assertEqual(name.places[0].line, theirs[0].line, hex(address))
            count["binutils' lines"] += lines(name.places) == lines(theirs)

    def symbols(self, program, debug, addresses, ours):
        """Each function is one of the symbol table that has the address in it."""
        tables = {**functions(debug), **functions(program)}
        plain = demangled({re.sub("@.*", "", name) for name in tables})
        at = collections.defaultdict(dict)
        for name, (start, size) in tables.items():
            at[start][plain[re.sub("@.*", "", name)]] = size
        for address, name in zip(addresses, ours):
            self.assertIn(name.function, at[address - name.offset], hex(address))
            self.assertLess(name.offset, max(at[address - name.offset].values()), hex(address))

    def assert_mostly_both(self, count):
        """What only one of the two confirms stays the exception."""
        total = count["both"] + count["eu"] + count["llvm"]
        self.assertGreater(count["both"], total * 9 // 10)
        self.assertGreater(count["binutils' lines"], total * 3 // 4)

    def test_libc(self):
        build_id = re.search(r"Build ID: ([0-9a-f]+)", run("readelf", "-n", LIBC))[1]
        debug = "%s/.build-id/%s/%s.debug" % (DEBUG, build_id[:2], build_id[2:])
        if not os.path.exists(debug):
            self.skipTest("needs libc6-dbg")
        # objdump needs the code, the sizes are in the debug file.
        spans = sorted(set(functions(debug).values()))
        addresses = random.Random(1).sample(
            [a for start, size in spans for a in range(start, start + size)], 5000)
        count, ours = self.compare(LIBC, debug, addresses, DEBUG)
        self.assert_mostly_both(count)
        self.assertGreater(sum(len(name.places) > 1 for name in ours), 500)

    def cxx(self, compiler, elfutils):
        program = self.build("program", CXX_SOURCE, "-std=c++17", compiler=compiler)
        addresses = instructions(program)
        self.assertGreater(len(addresses), 1000)
        count, ours = self.compare(program, program, addresses, elfutils=elfutils)
        self.assert_mostly_both(count)
        inlined = {place.function for name in ours for place in name.places[:-1]}
        self.assertTrue(any(name.startswith("std::") and "<" in name for name in inlined))
        self.assertGreater(max(len(name.places) for name in ours), 5)

    def test_cxx(self):
        self.cxx("g++", elfutils=True)

    def test_cxx_of_clang(self):
        """clang writes no .debug_aranges, without which elfutils before 0.191 finds nothing."""
        self.cxx("clang++", elfutils=False)

    def test_rust(self):
        """By LLVM: of most inlined calls, elfutils 0.188 finds only the outermost or none."""
        if not shutil.which("rustc"):
            self.skipTest("needs rustc")
        self.write("program.rs", """use std::collections::HashMap;
fn main() {
    let mut m: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..100u64 { m.entry(format!("{}", i % 7)).or_default().push(i * i); }
    let s: u64 = m.values().flat_map(|v| v.iter()).filter(|x| *x % 3 == 0).sum();
    println!("{}", s);
}
""")
        # The older way of mangling, and the newer.
        for flags in [], ["-C", "symbol-mangling-version=v0"]:
            self.run_here("rustc", "-g", "-O", *flags, "program.rs")
            program = self.path("program")
            addresses = random.Random(1).sample(instructions(program), 3000)
            _, ours = self.compare(program, program, addresses, elfutils=False)
            names = {place.function for name in ours for place in name.places}
            self.assertFalse([name for name in names if re.search(r"::h[0-9a-f]{16}$", name)])


class DemanglerTest(SymbolsTest):
    def test_names_of_libstdcxx_are_those_of_cxxfilt(self):
        """With the bounds on what is demangled, all is as without."""
        library = os.path.realpath("/usr/lib/x86_64-linux-gnu/libstdc++.so.6")
        table = functions(library)
        raw = {re.sub("@.*", "", name) for name in table}
        plain = demangled(raw)
        at = collections.defaultdict(set)
        for name, (start, _) in table.items():
            at[start].add(plain[re.sub("@.*", "", name)])
        addresses = sorted(start for start in at if start)
        self.assertGreater(len(addresses), 2000)
        ours, _ = symbolize(library, addresses)
        self.assertEqual([(hex(a), n.function) for a, n in zip(addresses, ours)
                          if n.function not in at[a]], [])


if __name__ == "__main__":
    unittest.main()
