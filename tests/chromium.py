"""chromium - a page in the browser chromium, as it is once a condition holds."""

import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

from mleaktest import LONG, end_process

FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --remote-debugging-pipe").split()

# The browser reads what it is asked from file descriptor 3 and answers to 4.
SCRIPT = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'


def pipe():
    """Both ends of a pipe, with numbers that are not in the way of 3 and 4."""
    ends = os.pipe()
    moved = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends]
    for end in ends:
        os.close(end)
    return moved


class Chromium:
    """A browser without a window, to be asked by the DevTools protocol."""

    def __init__(self, program, folder):
        theirs_in, self.to = pipe()
        self.back, theirs_out = pipe()
        self.process = subprocess.Popen(
            ["bash", "-c", SCRIPT, "-", str(theirs_in), str(theirs_out), program, *FLAGS,
             "--user-data-dir=" + folder, "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(theirs_in)
        os.close(theirs_out)
        self.end = time.monotonic() + 3 * LONG
        self.heard = b""
        self.asked = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        end_process(self.process)
        os.close(self.to)
        os.close(self.back)

    def ask(self, method, session=None, **params):
        self.asked += 1
        question = {"id": self.asked, "method": method, "params": params}
        if session:
            question["sessionId"] = session
        os.write(self.to, json.dumps(question).encode() + b"\0")
        while True:
            answer = self.hear()
            if answer.get("id") == self.asked:
                assert "result" in answer, answer
                return answer["result"]

    def hear(self):
        """The next message, an answer or an event."""
        while b"\0" not in self.heard:
            wait = max(0, self.end - time.monotonic())
            part = select.select([self.back], [], [], wait)[0] and os.read(self.back, 1 << 20)
            assert part, "chromium does not answer"
            self.heard += part
        message, _, self.heard = self.heard.partition(b"\0")
        return json.loads(message)

    def show(self, url):
        """Open a page; returns by what to ask of it."""
        target = self.ask("Target.createTarget", url=url)["targetId"]
        return self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def look(self, session, width, height=900, scheme="light"):
        """Have the page believe in a window of that size, and in a wish for "light" or "dark" colours."""
        self.ask("Emulation.setDeviceMetricsOverride", session, width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def point(self, session, kind, x, y, held=0):
        """Tell the page of the mouse: @kind is mouseMoved, mousePressed or mouseReleased."""
        self.ask("Input.dispatchMouseEvent", session, type=kind, x=x, y=y, button="left" if held or kind != "mouseMoved" else "none",
                 buttons=held, clickCount=1)

    def click(self, session, x, y):
        self.point(session, "mousePressed", x, y, 1)
        self.point(session, "mouseReleased", x, y)

    def press(self, session, key):
        """Press a key, by what it is called in the page's events."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        code = {"Escape": 27, "Enter": 13, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36}
        self.ask("Input.dispatchKeyEvent", session, type="keyDown", key=key, windowsVirtualKeyCode=code.get(key, 0), **text)
        self.ask("Input.dispatchKeyEvent", session, type="keyUp", key=key)

    def value(self, session, expression):
        """Of the JavaScript @expression in the page; None while it cannot be evaluated."""
        found = self.ask("Runtime.evaluate", session, expression=expression, returnByValue=True)
        return found["result"].get("value")


def evaluate(program, url, ready, expression):
    """The value of @expression in the page at @url, once @ready is true there; both are JavaScript."""
    with tempfile.TemporaryDirectory(prefix="mleak-test-chromium-", ignore_cleanup_errors=True) as folder, \
            Chromium(program, folder) as browser:
        page = browser.show(url)
        while not browser.value(page, ready):
            if time.monotonic() > browser.end:
                raise AssertionError("not true within %d s: %s; the page is: %s" % (
                    3 * LONG, ready, browser.value(page, "document.body.innerText")))
            time.sleep(0.05)
        return browser.value(page, expression)
