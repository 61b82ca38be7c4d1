"""What mleak shows on a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import time

from mleaktest import LONG


def see_on_terminal(test, *args, status=0, columns=0, rows=24, with_stderr=False, exact=True, **env):
    """What a terminal gets to see of mleak with @args, and of what is said beside it if so wanted."""
    settings = dict(os.environ, TERM="xterm", PAGER="cat", LC_ALL="C")
    for name in "NO_COLOR", "MLEAK_PAGER", "LESS":
        settings.pop(name, None)
    settings.update(env)
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))
    test.addCleanup(os.close, master)
    process = test.start_mleak(*args, stdout=slave, env=settings, exact=exact,
                               stderr=slave if with_stderr else subprocess.PIPE)
    os.close(slave)
    seen, deadline = b"", time.monotonic() + LONG
    while time.monotonic() < deadline:
        try:
            seen += os.read(master, 65536)
        except OSError:  # the other end was closed
            break
    test.assertEqual(process.wait(timeout=LONG), status)
    return seen.decode().replace("\r\n", "\n")
