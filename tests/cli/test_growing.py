"""A trace whose recorder still writes: it holds a lock on the file."""

import fcntl

import forge
from mleaktest import Case

CALLS = [(0x1000, 47), (0x2000, 53), (0x2000,)]


class GrowingTest(Case):
    def said(self, *args, status=0):
        result = self.mleak(*args)
        self.assertEqual(result.status, status, result.err)
        return result.out + result.err

    def test_a_trace_that_is_still_being_written_is_not_called_cut(self):
        whole = forge.small(CALLS).bytes()
        path = self.write("x.mlk", whole[:-113])
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            said = self.said("report", "--folded", path)
            self.assertIn("is still being written", said)
            self.assertNotIn("killed", said)
            self.assertRegex(self.said("info", path), "(?m)^ended +not yet: it is still being written$")
            self.assertIn("does not tell whether anything leaked: it is still being written",
                          self.said("report", "--fail-on-leak", path, status=2))
        # the recorder is gone
        self.assertIn("the recording was killed or the file was cut",
                      self.said("report", "--folded", path))
        self.assertRegex(self.said("info", path), "(?m)^ended +no: killed, or cut$")

    def test_one_that_has_its_end_is_whole_whoever_holds_it(self):
        path = self.write("x.mlk", forge.small(CALLS).bytes())
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self.assertEqual(self.mleak("report", path).err, "")
