"""The results of a replay in the cache beside a trace: which reports use them, and when they are believed."""

import json
import os
import random
import shutil

from cachetest import LIBC, MORE_VIEWS, OWN, USERS, WITH_GROWTH, CacheCase
from mleaktest import MLEAK_FAST
from unwindtest import EVENTS, UNWOUND, chunks_of, join

# Reports of all blocks, which need nothing else that happened meanwhile.
PLAIN = [[], ["--flat"], ["--folded"], ["--inverted"], ["--growth"], ["--timeline"], ["--format=csv"], ["--format=json"],
         ["--format=pprof"], ["--format=speedscope"], ["--by", "function"], ["--by", "size"], ["--by", "process"],
         ["--folded", "--cost", "allocated"], ["--folded", "--cost", "peak"], ["--folded", "--cost", "temporary"],
         ["--min-bytes", "1K"], ["--function", "main"], ["-j", "1"], ["--per-process"]]
OTHERS = [["--at", "100ms"], ["--older", "1ms"], ["--thread", "*"], ["--pid", "{pid}"], ["--format=json", "--temporary", "1"],
          ["--by", "thread"], ["--format=heaptrack"], ["--format=html"], ["--between", "1ms,200ms"]]
MUTATIONS = 60


class ResultsCase(CacheCase):
    def owns(self):
        """The types of chunks with results."""
        return {c.type for c in chunks_of(self.read(self.cache)) if c.type >= OWN}

    def change(self, change):
        """Have the results say something else, under right sums; @change() is given their bytes."""
        data = self.make()
        chunks = chunks_of(data)
        own = [c for c in chunks if c.type == WITH_GROWTH]
        self.assertEqual(len(own), 1)  # so small a trace has few
        content = bytearray(own[0].content())
        change(content)
        own[0].set_content(bytes(content))
        self.write("x.mlk.stacks", join(data, chunks))
        os.chmod(self.cache, 0o600)

    def move_libc(self):
        """Another address where the C library was mapped."""
        def change(content):
            content[content.index(LIBC) - 56 + 1] ^= 0x11  # the fields before the path: its bias is the first
        self.change(change)

    def views(self, views):
        pid = json.loads(self.plain("--format=json", self.path_of)[1])["trace"]["pid"]
        return [[word.format(pid=pid) for word in view] for view in views]


class UseTest(ResultsCase):
    def test_all_views_are_the_same(self):
        for trace in USERS:
            shutil.copy(trace, self.path_of)
            with self.subTest(trace=os.path.basename(trace)):
                self.make()
                # of overruns the blocks around are told, which takes the second pass
                self.assertEqual(self.owns(), set() if "overrun" in trace else {WITH_GROWTH})
                before = self.read(self.cache)
                for view in PLAIN + MORE_VIEWS:
                    with self.subTest(view=view):
                        self.assertEqual(self.cached(*view, self.path_of), self.plain(*view, self.path_of))
                self.assertEqual(self.read(self.cache), before)
                os.unlink(self.cache)

    def test_who_uses_them(self):
        """By results that lie under right sums."""
        self.move_libc()
        for used, views in (True, PLAIN), (False, OTHERS):
            for view in self.views(views):
                if {"--growth", "--timeline", "--by", "--function", "temporary"} & set(view):
                    continue  # these have no address in the C library
                view = [*view, "--addresses"]
                with self.subTest(view=view):
                    differ = self.cached(*view, self.path_of) != self.plain(*view, self.path_of)
                    self.assertEqual(differ, used)

    def test_traces_that_have_their_stacks_have_results_alone(self):
        for options in ["--drop-raw"], []:
            self.unwind("-q", "-o", self.unwound, *options, self.trace)
            plain = self.cached("--no-cache", self.unwound)
            for _ in range(2):
                self.assertEqual(self.cached(self.unwound), plain)
                types = {c.type for c in chunks_of(self.read(self.unwound + ".stacks"))}
                self.assertEqual(types, {WITH_GROWTH})
            for view in PLAIN:
                with self.subTest(options=options, view=view):
                    self.assertEqual(self.cached(*view, self.unwound), self.cached("--no-cache", *view, self.unwound))
            for name in self.unwound, self.unwound + ".stacks":
                os.unlink(name)

    def test_they_come_with_the_first_report_of_all(self):
        """What does not ask what grows has results without that, until there are such."""
        self.cached("--thread", "*", self.path_of)
        self.assertEqual(self.owns(), set())
        stacks = self.read(self.cache)
        self.cached("--at", "1ms", self.path_of)
        self.assertEqual(self.read(self.cache), stacks)
        for views, types in ([["--folded"], ["--format=json"]], {OWN}), ([[], ["--folded"]], {WITH_GROWTH}):
            for view in views:
                self.assertEqual(self.cached(*view, self.path_of), self.plain(*view, self.path_of))
                self.assertEqual(self.owns(), types)
            self.assertEqual(self.read(self.cache)[:len(stacks)], stacks)
        for view in PLAIN:
            with self.subTest(view=view):
                self.assertEqual(self.cached(*view, self.path_of), self.plain(*view, self.path_of))

    def test_what_a_program_of_others_would_read(self):
        """A cache without them is as good as before."""
        self.move_libc()
        self.lie()
        self.assertTrue(self.is_used())


class MemoryTest(ResultsCase):
    program = MLEAK_FAST  # sanitizers take more memory, and hang where they get none

    def test_what_memory_is_too_short_for_stays(self):
        before = self.make()
        for most in "1M", "64M":
            with self.subTest(most=most):
                self.assertEqual(self.cached("--max-memory", most, self.path_of)[:2],
                                 self.plain("--max-memory", most, self.path_of)[:2])
                self.assertEqual(self.read(self.cache), before)


class BeliefTest(ResultsCase):
    def test_damage_of_the_trace_is_told_as_without(self):
        for unwound in False, True:
            if unwound:
                self.unwind("-q", "-o", self.unwound, self.trace)
                os.rename(self.unwound, self.path_of)
            data = self.read(self.path_of)
            for type_ in [EVENTS] + [UNWOUND] * unwound:
                self.write("x.mlk", data)
                self.make()
                self.assertTrue(self.owns())
                damaged = bytearray(data)
                damaged[data.index([c for c in chunks_of(data) if c.type == type_][-1].payload) + 40] ^= 1
                self.write("x.mlk", bytes(damaged))
                with self.subTest(unwound=unwound, type=type_):
                    # events that are unwound are not needed
                    self.assertEqual(self.plain(self.path_of)[2] != "", type_ == UNWOUND or not unwound)
                    made = os.stat(self.cache).st_ino
                    for view in PLAIN:
                        self.assertEqual(self.cached(*view, self.path_of), self.plain(*view, self.path_of))
                    # nothing is wrong with the results: not each report is to write them again
                    self.assertEqual(os.stat(self.cache).st_ino, made)
                os.unlink(self.cache)

    def test_a_cache_that_is_damaged_is_not_read(self):
        data = self.make()
        own = [c for c in chunks_of(data) if c.type == WITH_GROWTH][0]
        at = data.index(own.payload)
        plain = self.plain(self.path_of)
        for place in 0, len(own.payload) // 2, len(own.payload) - 1:
            damaged = bytearray(data)
            damaged[at + place] ^= 0x20
            self.write("x.mlk.stacks", bytes(damaged))
            os.chmod(self.cache, 0o600)
            self.assertEqual(self.cached(self.path_of), plain)
        for cut in data[:at + 1], data[:at - 100]:
            self.write("x.mlk.stacks", cut)
            os.chmod(self.cache, 0o600)
            self.assertEqual(self.cached(self.path_of), plain)

    def test_a_piece_that_is_larger_than_any_is_not_read(self):
        """By such ones a report would take more memory than it thinks."""
        self.change(lambda content: content.extend(bytes((1 << 20) + 1 - len(content))))
        lie = self.read(self.cache)
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
        self.assertLess(len(self.read(self.cache)), len(lie))  # it was made anew
        self.change(lambda content: content.extend(bytes((1 << 20) - len(content))))
        largest = self.read(self.cache)
        self.assertEqual(self.cached(self.path_of), self.plain(self.path_of))
        self.assertEqual(self.read(self.cache), largest)

    def test_content_with_right_sums_does_no_harm(self):
        """Whose a trace is may make its report say anything, but not more."""
        for seed in range(MUTATIONS):
            rng = random.Random(seed)

            def mutate(content):
                for _ in range(rng.choice((1, 3, 20))):
                    content[rng.randrange(len(content))] = rng.choice((0, 1, 0x7f, 0xff, rng.randrange(256)))
                if not rng.randrange(4):
                    del content[rng.randrange(len(content)):]
            self.change(mutate)
            with self.subTest(seed=seed):
                for view in rng.sample(PLAIN, 3):
                    self.assertEqual(self.cached(*view, self.path_of)[0], 0)
            os.unlink(self.cache)
