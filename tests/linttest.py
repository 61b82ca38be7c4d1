"""linttest - for the tests of tests/lint/: what a check says of files"""

import os
import subprocess
import sys

from mleaktest import Case, TESTS


class LintCase(Case):
    script = ""  # its name in tests/lint
    ending = ""  # of the files' names

    def findings(self, *texts):
        """What the check prints of files with @texts, named 0, 1 and so on with the ending."""
        names = ["%d%s" % (number, self.ending) for number in range(len(texts))]
        for name, text in zip(names, texts):
            self.write(name, text.encode())
        done = subprocess.run([sys.executable, os.path.join(TESTS, "lint", self.script), *names], cwd=self.dir,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (1 if done.stdout else 0, ""))
        return done.stdout.splitlines()
