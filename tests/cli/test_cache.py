"""The cache beside a trace, its stacks: reports are the same with it, without it, and while it is made."""

import os
import shutil
import struct

from cachetest import KERNEL, MORE_VIEWS, USERS, CacheCase
from unwindtest import EVENTS, GOLDEN, MODULE, chunks_of, join


class SameTest(CacheCase):
    def test_all_views_are_the_same(self):
        for trace in USERS:
            shutil.copy(trace, self.path_of)
            for view in MORE_VIEWS:
                with self.subTest(trace=os.path.basename(trace), view=view):
                    self.assertEqual(self.cached(*view, self.path_of), self.plain(*view, self.path_of))
            self.assertTrue(os.path.exists(self.cache))

    def test_the_report_that_makes_it_is_the_same(self):
        for view in [], ["--folded"], ["--format=heaptrack"], ["--format=json", "-j", "1"]:
            plain = self.plain(*view, self.path_of)
            self.assertEqual(self.cached(*view, self.path_of), plain)
            os.unlink(self.cache)

    def test_traces_of_the_kernel_have_none(self):
        """What is read in place of events does not tell where blocks of the kernel come from."""
        shutil.copy(KERNEL, self.path_of)
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
        self.assert_nothing_is_left(["x.mlk"])

    def test_a_second_report_reads_it(self):
        self.assertFalse(os.path.exists(self.cache))
        lie = self.lie()
        self.assertTrue(self.is_used())
        self.assertTrue(self.is_used("--at", "1h"))
        self.assertTrue(self.is_used("-j", "1"))
        self.assertEqual(self.read(self.cache), lie)

    def test_it_is_made_without_being_asked_where_it_pays(self):
        self.cached(self.path_of, mode="auto")
        self.assert_nothing_is_left(["x.mlk"])  # such a small one is unwound at once
        for mode in "never", "":
            self.cached(self.path_of, mode=mode)
            self.assert_nothing_is_left(["x.mlk"])
        self.plain(self.path_of)
        self.assert_nothing_is_left(["x.mlk"])
        self.make()
        self.assert_nothing_is_left(["x.mlk", "x.mlk.stacks"])

    def test_other_commands_that_unwind_have_it(self):
        env = dict(os.environ, MLEAK_CACHE="always")
        self.mleak("diff", self.path_of, self.path_of, env=env)
        self.assert_nothing_is_left(["x.mlk", "x.mlk.stacks"])
        self.mleak("diff", "--no-cache", self.path_of, self.path_of, env=env)
        os.unlink(self.cache)
        for command in "info", "script":
            self.mleak(command, self.path_of, env=env)
            self.assert_nothing_is_left(["x.mlk"])

    def test_a_wrong_value_is_refused(self):
        status, out, err = self.cached(self.path_of, mode="sometimes")
        self.assertEqual((status, out), (2, ""))
        self.assert_one_message(err, naming="never, auto or always")

    def test_what_is_not_cached(self):
        """Traces that have their stacks, or have none, are cut, or come through a pipe; parts of them."""
        self.cached("--at", "1ms", self.path_of)
        self.assert_nothing_is_left(["x.mlk"])
        self.cached("--dump", self.path_of)
        self.assert_nothing_is_left(["x.mlk"])
        with open(self.path_of, "rb") as stdin:
            self.cached("-", stdin=stdin)
        self.assert_nothing_is_left(["x.mlk"])
        data = self.read(self.path_of)
        cut = self.write("x.mlk", data[:-10])
        self.cached(cut)
        self.assert_nothing_is_left(["x.mlk"])
        self.unwind("-q", "-o", self.unwound, self.trace)
        self.cached("--at", "1ms", self.unwound)
        self.unwind("-q", "-o", self.path("dropped.mlk"), "--drop-raw", self.trace)
        self.cached("--thread", "*", self.path("dropped.mlk"))
        self.assert_nothing_is_left(["dropped.mlk", "unwound.mlk", "x.mlk"])

    def test_it_is_no_trace(self):
        self.make()
        result = self.mleak("report", self.cache)
        self.assertEqual((result.status, result.out), (2, ""))
        self.assert_one_message(result.err, naming="is not a mleak trace")

    def test_size(self):
        """It has no registers and no stacks."""
        self.assertLess(len(self.make()), len(self.read(self.path_of)) / 10)


class OtherTraceTest(CacheCase):
    """A cache of another trace, or of what the trace was before."""

    def assert_made_anew(self, lie):
        self.assertFalse(self.is_used())
        self.assertNotEqual(self.read(self.cache), lie)
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))

    def test_that_of_another_trace(self):
        other = self.write("other.mlk", self.read(GOLDEN[0]))
        lie = self.lie()
        os.rename(other, self.path_of)
        self.assert_made_anew(lie)

    def test_of_one_that_was_changed(self):
        """With the length and the times that it had: a FREE has another address, under right sums."""
        data, lie, before = self.read(self.path_of), self.lie(), os.stat(self.path_of)
        chunks = chunks_of(data)
        events = [c for c in chunks if c.type == EVENTS][-1]
        head = struct.unpack_from("<QQ", events.head, 48)
        struct.pack_into("<QQ", events.head, 48, head[0] + 1, head[1])  # one more was lost
        self.write("x.mlk", join(data, chunks))
        os.utime(self.path_of, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertIn("lost", self.plain(self.path_of)[1])
        self.assertEqual(self.cached("--thread", "*", self.path_of)[0], self.plain(self.path_of)[0])
        # the losses are not the stacks' affair, but the payload is
        events.payload = events.payload[:-1] + bytes([events.payload[-1] ^ 1])
        self.write("x.mlk", join(data, chunks))
        os.utime(self.path_of, ns=(before.st_atime_ns, before.st_mtime_ns))
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
        self.assertFalse(self.is_used())
        self.assertEqual(self.read(self.cache), lie)  # what is damaged has none

    def test_damage_is_told_as_without(self):
        data = bytearray(self.read(self.path_of))
        self.make()
        chunk = [c for c in chunks_of(bytes(data)) if c.type == EVENTS][-1]
        data[bytes(data).index(chunk.payload) + 40] ^= 1
        self.write("x.mlk", bytes(data))
        plain = self.plain(self.path_of)
        self.assertIn("damaged", plain[2])
        for view in [], ["--format=heaptrack"], ["--growth"], ["--by", "thread"], ["--format=html"]:
            self.assertEqual(self.cached(*view, self.path_of), self.plain(*view, self.path_of))


def read_uvar(content, at):
    value = shift = 0
    while True:
        value |= (content[at] & 127) << shift
        shift += 7
        at += 1
        if content[at - 1] < 128:
            return value, at


def take_image(data, name):
    """The trace @data without the image of the module @name; the path and the image."""
    chunks, image, path = chunks_of(data), b"", None
    for chunk in chunks:
        content = chunk.content()
        behind_id = 1 + content[0]
        length, at = read_uvar(content, behind_id)
        if chunk.type != MODULE or not content[at:at + length].endswith(name):
            continue
        path, at = content[at:at + length], at + length
        for _ in range(3):
            size, at = read_uvar(content, at)
        image += content[at:at + size]
        chunk.set_content(content[:behind_id] + bytes([len(path)]) + path + bytes(3))
    return join(data, chunks), os.fsdecode(path), image


class ModuleTest(CacheCase):
    """By what a module was unwound is not the trace's alone."""

    def test_a_module_that_comes_later(self):
        data, name, image = take_image(self.read(self.trace), b"/cxx")
        self.write("x.mlk", data)
        root = self.path("root")
        os.makedirs(root + os.path.dirname(name))
        view = ["--addresses", "--symfs", root, self.path_of]
        without = self.plain(*view)
        self.assertEqual(self.cached(*view), without)
        before = self.read(self.cache)
        with open(root + name, "wb") as file:
            file.write(image)
        found = self.plain(*view)
        self.assertNotEqual(found, without)
        self.assertEqual(self.cached(*view), found)
        self.assertNotEqual(self.read(self.cache), before)
        self.assertEqual(self.cached(*view), found)
        os.unlink(root + name)
        self.assertEqual(self.cached(*view), without)
        self.assertEqual(self.read(self.cache), before)
