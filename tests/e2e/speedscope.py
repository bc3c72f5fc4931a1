#!/usr/bin/env python3
"""speedscope's own importer: the application opens in a real browser what ptmem-report --format=speedscope writes, and its
table of functions has the sums of the recording.

Usage: speedscope.py [PTMEM_REPORT]
The last line is "N passed, N failed"; status 1 if any failed, 77 if the browser or speedscope is not installed.
"""
import base64
import decimal
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import webdriver  # noqa: E402

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
REPORT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/ptmem-report")
PAGE = os.path.abspath(os.path.join(ROOT, "build/npm/node_modules/speedscope/dist/release/index.html"))
ROWS = "[...document.querySelectorAll('tr')].slice(1).map(row => [...row.children].map(cell => cell.textContent.trim()))"
count = {True: 0, False: 0}


def same(name, got, wanted):
    count[got == wanted] += 1
    if got != wanted:
        print("FAIL", name, got, "instead of", wanted)


def require():
    webdriver.require()
    if not os.path.exists(PAGE):
        print("skipped: speedscope is not installed (scripts/install-deps test needs npm's registry)")
        sys.exit(77)


def record(directory):
    """A recording of doc/orders.c."""
    subprocess.run(["gcc", "-g", "-o", "orders", os.path.join(ROOT, "doc/orders.c")], cwd=directory, check=True)
    subprocess.run([os.path.join(os.path.dirname(REPORT), "ptmem"), "-q", "--no-rc", "--record=r", "--massif-out-file=m", "./orders"],
                   cwd=directory, check=True, stdout=subprocess.DEVNULL)
    return os.path.join(directory, "r")


def report(*arguments):
    return subprocess.run([REPORT, *arguments], check=True, stdout=subprocess.PIPE).stdout


def shown_bytes(n):
    """As speedscope prints them."""
    units = ["B", "KB", "MB", "GB"]
    while n >= 1024:
        n /= 1024
        units.pop(0)
    if units[0] == "B":
        return f"{n:.0f} B"
    # a half is rounded up by JavaScript
    return f"{decimal.Decimal(n).quantize(decimal.Decimal('0.01'), decimal.ROUND_HALF_UP)} {units[0]}"


def wanted_rows(recording, options):
    """[total, self, name] of each frame, sorted."""
    data = json.loads(report("--format=json", *(options or ["--at=peak"]), recording))
    nodes, total, own = data["nodes"], {}, {}
    for leaf, size in zip(data["view"]["leaf"], data["view"]["bytes_of"]):
        path, node = [], data["leaves"]["node"][leaf]
        while node >= 0:
            path.append(nodes["frame"][node])
            node = nodes["parent"][node]
        own[path[0]] = own.get(path[0], 0) + size
        for frame in set(path):
            total[frame] = total.get(frame, 0) + size
    return sorted([shown_bytes(n), shown_bytes(own.get(f, 0)), data["frames"]["function"][f]] for f, n in total.items())


def open_profile(browser, directory, data):
    """Opens speedscope with a file, as its command line does."""
    script = os.path.join(directory, "profile.js")
    with open(script, "w", encoding="ascii") as file:
        file.write("speedscope.loadFileFromBase64('profile.json', %s)" % json.dumps(base64.b64encode(data).decode()))
    browser.call("POST", "/url", {"url": "about:blank"})
    browser.call("POST", "/url", {"url": f"file://{PAGE}#view=sandwich&localProfilePath={script}"})


def check(browser, directory, recording, options):
    open_profile(browser, directory, report("--format=speedscope", *options, recording))
    browser.wait(ROWS + ".length")
    same("title", browser.js("return document.title"), "./orders - speedscope")
    rows = [[total.split(" (")[0], own.split(" (")[0], name] for total, own, name in browser.js("return " + ROWS)]
    same(f"functions of {options}", sorted(rows), wanted_rows(recording, options))


def main():
    require()
    with tempfile.TemporaryDirectory() as directory:
        recording, browser = record(directory), webdriver.Browser(directory, True)
        try:
            browser.call("POST", "/window/rect", {"width": 1200, "height": 1200})
            for options in ([], ["--at=end"], ["--match=^take_orders?$"]):
                check(browser, directory, recording, options)
        finally:
            browser.close()
    print(f"{count[True]} passed, {count[False]} failed")
    sys.exit(1 if count[False] else 0)


main()
