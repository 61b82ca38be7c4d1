"""thentest - for the tests of what a recorder has done when its recording has ended: the process that does it"""

import os

from mleaktest import Case


class ThenCase(Case):
    def then_of(self, recorder):
        """That process of @recorder: of those that run mleak, the one that was made first."""
        own = os.readlink("/proc/%d/exe" % recorder.pid)
        with open("/proc/%d/task/%d/children" % (recorder.pid, recorder.pid)) as children:
            return next(pid for pid in map(int, children.read().split())
                        if os.readlink("/proc/%d/exe" % pid) == own)

    def pipe_has_ended(self, recorder):
        """Has @recorder closed the pipe to it, the only one that it has of its own?"""
        folder = "/proc/%d/fd" % recorder.pid
        try:
            return not any(int(fd) > 2 and os.readlink(os.path.join(folder, fd)).startswith("pipe:")
                           for fd in os.listdir(folder))
        except OSError:
            return True
