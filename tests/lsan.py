"""LeakSanitizer, asked what it suppresses."""

import os
import re
import subprocess


def suppressed(program, *options):
    """What it suppresses in @program, built with -fsanitize=leak, with these LSAN_OPTIONS:
    {pattern: (blocks, bytes)}, and all that it said.  None: it does not work here."""
    given = ":".join(("print_suppressions=1", "exitcode=0") + options)
    done = subprocess.run([program], env=dict(os.environ, LSAN_OPTIONS=given),
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if "LeakSanitizer has encountered a fatal error" in done.stderr:
        return None, done.stderr
    table = re.search(r"Suppressions used:\n.*\n((?: +\d+ +\d+ .*\n)+)", done.stderr)[1]
    return {name: (int(count), int(size))
            for count, size, name in re.findall(r"^ +(\d+) +(\d+) (.*)$", table, re.M)}, done.stderr
