#!/usr/bin/env python3
"""top_picture.py - draw the screen of `mleak top` as it is on a terminal, as SVG; for doc/images

usage: top_picture.py MLEAK OUT.svg      (as root, with redis-tools and tmux)

A redis-server is full and overwrites, and a list of it grows without end.  Its screen is taken from
tmux after some tables.
"""

import html
import os
import re
import subprocess
import sys
import tempfile
import time

COLUMNS, ROWS = 118, 16
WIDTH, HEIGHT, SIZE = 8.4, 18, 14  # of a character, of a line, and of the font
COLORS = {31: "#c01c28", 33: "#a2734c", 36: "#2aa1b3"}
INK, PAPER = "#d0cfcc", "#1e1e1e"
SGR = re.compile(r"\x1b\[([\d;]*)m")


def pieces(line):
    """The parts of a line with one appearance each: text, and the numbers of ECMA-48's SGR that are on."""
    on, at = set(), 0
    for found in list(SGR.finditer(line)) + [None]:
        text = line[at:found.start() if found else len(line)]
        if text:
            yield text, on
        if not found:
            return
        at = found.end()
        for number in (int(n) for n in (found[1] or "0").split(";")):
            if number == 0:
                on = set()
            elif number == 39:
                on = {n for n in on if not 30 <= n <= 37}
            elif 21 <= number <= 29:
                on = on - {number - 20, 1 if number == 22 else number - 20}
            else:
                on = on | {number}


def draw(lines):
    """The SVG of these lines."""
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="monospace" font-size="%d">' %
           (COLUMNS * WIDTH + 20, len(lines) * HEIGHT + 20, SIZE),
           '<rect width="100%%" height="100%%" rx="6" fill="%s"/>' % PAPER]
    for y, line in enumerate(lines):
        x, base = 0, 10 + y * HEIGHT
        for text, on in pieces(line):
            ink, paper = next((COLORS[n] for n in on if n in COLORS), INK), None
            if 7 in on:
                ink, paper = PAPER, ink
            left, wide = 10 + x * WIDTH, len(text) * WIDTH
            if paper:
                out.append('<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>' %
                           (left, base, wide, HEIGHT, paper))
            if text.strip() or 4 in on:
                out.append('<text x="%.1f" y="%d" fill="%s" textLength="%.1f" xml:space="preserve"%s%s>%s</text>' %
                           (left, base + 14, ink, wide, ' font-weight="bold"' if 1 in on else "",
                            ' text-decoration="underline"' if 4 in on else "", html.escape(text)))
            x += len(text)
    return "\n".join(out + ["</svg>", ""])


def main():
    mleak, out = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        socket, server = os.path.join(folder, "redis"), os.path.join(folder, "redis-server")
        os.symlink("/usr/bin/redis-check-rdb", server)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        bench = ["redis-benchmark", "-s", socket, "-d", "64", "-q"]
        begun = [subprocess.Popen([server, "--port", "0", "--unixsocket", socket, "--save", ""], **quiet)]
        tmux = ["tmux", "-S", os.path.join(folder, "tmux")]
        try:
            while not os.path.exists(socket):
                time.sleep(0.1)
            subprocess.run([*bench, "-t", "set", "-r", "20000", "-n", "200000", "-P", "16"], check=True, **quiet)
            for load in (["-t", "set", "-r", "20000"], ["-t", "lpush"]):
                begun.append(subprocess.Popen([*bench, *load, "-n", "100000000", "-c", "2"], **quiet))
            subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS),
                            "'%s' top -p %d 500ms" % (mleak, begun[0].pid)], check=True,
                           env={**os.environ, "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"})
            time.sleep(10)
            screen = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, text=True,
                                    stdout=subprocess.PIPE).stdout
        finally:
            subprocess.run([*tmux, "kill-server"], **quiet)
            for process in reversed(begun):
                process.kill()
                process.wait()
    with open(out, "w", encoding="utf-8") as picture:
        picture.write(draw(screen.rstrip("\n").split("\n")))


if __name__ == "__main__":
    main()
