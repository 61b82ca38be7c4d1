"""Recording by the preloaded library, as an ordinary user; and that it sees what BPF sees."""

import os
import subprocess
import unittest

from mleaktest import AS_NOBODY, MLEAK_FAST, Case, needs_bpf, parse_folded, parse_totals


class PreloadCase(Case):
    """Commands are recorded by the preloaded library; as nobody where we may become that."""

    as_user = AS_NOBODY if os.geteuid() == 0 else {}
    options = ("--backend", "preload")

    def setUp(self):
        Case.setUp(self)
        os.chmod(self.dir, 0o777)

    def record(self, *argv, options=(), **popen_options):
        popen_options.update(self.as_user)
        return Case.record(self, *argv, options=[*self.options, *options], **popen_options)

    def compile(self, name, source, *flags, compiler="gcc"):
        self.write(name + ".c", source.encode())
        subprocess.run([compiler, "-O2", "-g", "-pthread", "-fno-builtin",
                        "-fno-optimize-sibling-calls", "-o", name, name + ".c", *flags],
                       cwd=self.dir, check=True)
        return self.path(name)


class AutoTest(PreloadCase):
    options = ()

    @unittest.skipIf(os.geteuid() != 0, "needs root to become another user")
    def test_a_command_is_recorded_without_privileges(self):
        trace, _ = self.record(self.sample("single"))
        dump = self.report(trace, "--dump")
        self.assertRegex(dump, r"(?m)backend\W+preload")
        self.assertEqual(parse_totals(self.report(trace)).outstanding, (23, 1081))


@needs_bpf
class DifferentialTest(PreloadCase):
    """Both backends find the same stacks with the same outstanding bytes."""

    as_user = {}
    program = MLEAK_FAST

    def stacks(self, backend, argv, given=None, env=None):
        self.options = ("--backend", backend)
        with open(given or os.devnull) as stdin:
            # Elsewhere, for python3 reads the names in its folder, of which a trace is one.
            trace, out = self.record(*argv, stdin=stdin, cwd="/usr", env=dict(os.environ, **env or {}))
        totals = parse_totals(self.report(trace))
        self.assertEqual(totals.lost, 0)
        # What happened before the first constructor only the library saw.
        return out, {tuple(s.frames): s.bytes
                     for s in parse_folded(self.report(trace, "--format=folded"))}

    def check(self, *argv, **how):
        """Hashes of pointers make some programs differ from one run to the next: then once more."""
        for _ in range(6):
            bpf_out, bpf = self.stacks("bpf", argv, **how)
            out, preload = self.stacks("preload", argv, **how)
            self.assertEqual(out, bpf_out)
            self.assertGreater(len(bpf), 0)
            if preload == bpf:
                return
        self.assertEqual(preload, bpf)

    def test_sqlite3(self):
        sql = self.write("in.sql", b"create table t(a, b);\nwith recursive n(i) as (select 1 union"
                         b" all select i + 1 from n where i < 300) insert into t select i, i * 7"
                         b" from n;\ncreate index x on t(b); select sum(b) from t;\n")
        self.check("/usr/bin/sqlite3", ":memory:", given=sql)

    def test_perl(self):
        self.check("/usr/bin/perl", "-e", "my %h; $h{$_} = [1..3] for 1..200; print scalar %h;",
                   env={"PERL_HASH_SEED": "0", "PERL_PERTURB_KEYS": "0"})

    def test_python3(self):
        self.check(os.path.realpath("/usr/bin/python3"), "-S", "-c",
                   "import json; print(len(json.dumps([{str(i): i} for i in range(99)])))",
                   env={"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"})

    def test_compiler(self):
        cc1 = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.strip()
        source = self.write("in.c", b"int f(int a) { return a * 7 + 1; }\n")
        self.check(cc1, "-quiet", "-O1", source, "-o", "/dev/null")

    def test_cxx(self):
        self.check(self.sample("cxx"))

    def test_git(self):
        repo = self.path("repo")
        git = ["/usr/bin/git", "-c", "user.name=n", "-c", "user.email=m", "-C", repo]
        os.mkdir(repo)
        for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"],
                        ["commit", "-q", "-a", "-m", "two"]):
            self.write("repo/a file", " ".join(command * 30).encode())
            subprocess.run([*git, *command], check=True, env=self.git_env())
        self.check("/usr/bin/git", "-C", repo, "log", "--stat", "-p", env=self.git_env())

    def git_env(self):
        """Without a configuration of whoever runs this."""
        return dict(os.environ, HOME=self.dir, GIT_CONFIG_NOSYSTEM="1")


if __name__ == "__main__":
    unittest.main()
