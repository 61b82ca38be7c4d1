#!/usr/bin/env python3
"""page_pictures.py - pictures of a page of --format=html in a browser: light, dark, and on a phone; for doc/images

usage: page_pictures.py MLEAK FOLDER      (as root, with redis-tools and chromium)

A redis-server overwrites some keys, and gets others that nobody deletes.  The pictures are
FOLDER/page-light.png, page-dark.png and page-phone.png.
"""

import base64
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import chromium  # noqa: E402
import formatstest  # noqa: E402

PICTURES = (("page-light", 1280, 860, "light", "view=overview"), ("page-dark", 1280, 1000, "dark", "view=flame"),
            ("page-phone", 390, 844, "light", "view=overview"))
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def record(mleak, folder):
    """Record the server for half a minute; returns the path of the page."""
    socket = os.path.join(folder, "redis")
    trace, page = os.path.join(folder, "redis.mlk"), os.path.join(folder, "redis.html")
    os.symlink("/usr/bin/redis-check-rdb", os.path.join(folder, "redis-server"))
    bench = ["redis-benchmark", "-s", socket, "-q", "-n", "100000000", "-c", "1"]
    begun = [subprocess.Popen(["./redis-server", "--port", "0", "--unixsocket", "redis", "--save", ""], cwd=folder, **QUIET)]
    try:
        while not os.path.exists(socket):
            time.sleep(0.1)
        for load in (["-t", "set,get", "-r", "2000"], ["rpush", "sessions:1", "of a client that is gone"],
                     ["-r", "1000000000", "hset", "user:__rand_int__", "name", "somebody"]):
            begun.append(subprocess.Popen([*bench, *load], **QUIET))
        time.sleep(2)
        subprocess.run([mleak, "record", "-q", "-p", str(begun[0].pid), "-d", "30", "-o", trace], check=True)
    finally:
        for process in reversed(begun):
            process.kill()
            process.wait()
    with open(page, "wb") as out:
        subprocess.run([mleak, "report", "--format=html", trace], check=True, stdout=out)
    return page


def picture(browser, page, folder, name, width, height, scheme, address):
    session = browser.show("about:blank")
    browser.look(session, width, height, scheme)
    browser.ask("Page.navigate", session, url="file://%s#%s" % (page, address))
    while not browser.value(session, formatstest.DRAWN):
        time.sleep(0.05)
    taken = browser.ask("Page.captureScreenshot", session, format="png")["data"]
    with open(os.path.join(folder, name + ".png"), "wb") as out:
        out.write(base64.b64decode(taken))


def main():
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        page = record(os.path.abspath(sys.argv[1]), folder)
        with chromium.Chromium("chromium", os.path.join(folder, "profile")) as browser:
            for each in PICTURES:
                picture(browser, page, sys.argv[2], *each)


if __name__ == "__main__":
    main()
