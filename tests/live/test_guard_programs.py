"""Programs of the machine do the same with guard bytes around their blocks, and overrun none."""

import test_preload_programs

NAMES = ["bash", "python3", "perl", "git", "gcc", "sqlite3"]


class GuardedProgramTest(test_preload_programs.ProgramTest):
    how = ("--guard",)
    programs = {name: test_preload_programs.PROGRAMS[name] for name in NAMES}
    programs["python3, all of its objects"] = [
        "env", "PYTHONMALLOC=malloc", "python3", "-c", "import json\n"
        "print(len(json.dumps([list(range(9)) for _ in range(99)])))"]
    programs["cc1"] = ["sh", "-c", "exec $(gcc -print-prog-name=cc1) -quiet -O2 in.c -o -"]

    def check_trace(self, trace):
        self.assertIn("\n  no overruns: ", self.report(trace, "--addresses"))

    test_a_server_and_its_client = None

