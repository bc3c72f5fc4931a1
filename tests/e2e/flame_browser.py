#!/usr/bin/env python3
"""A flame graph in a real browser, from a file:// URL without network: what is drawn, a click that zooms and
the way back, hovering, searching by button and by Ctrl-F, printing, the window's width, and that it works without its
script.

Usage: flame_browser.py [PTMEM_REPORT] [SCREENSHOT.png]
The last line is "N passed, N failed"; status 1
if any failed, 77 if chromium or chromedriver is not installed; on a build machine (CI is set) that is a failure.
"""
import base64
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

import webdriver  # noqa: E402
from webdriver import ELEMENT  # noqa: E402

REPORT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/ptmem-report")
SCREENSHOT = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else None
count = {True: 0, False: 0}

PROFILE = """desc: (none)
cmd: ./program <a> & "b"
time_unit: B
#-----------
snapshot=0
#-----------
time=1
mem_heap_B=100000
mem_heap_extra_B=0
mem_stacks_B=0
heap_tree=peak
n3: 100000 (heap allocation functions) malloc/new/new[], --alloc-fns, etc.
 n1: 50000 0x1: std::vector<int, std::allocator<int> >::push_back(int const&) (v.h:3)
  n1: 50000 0x2: parse(char const*) (p.c:4)
   n0: 50000 0x3: main (m.c:5)
 n2: 40000 0x4: new_node (n.c:1)
  n1: 30000 0x5: parse(char const*) (p.c:9)
   n0: 30000 0x3: main (m.c:5)
  n1: 10000 0x6: late (p.c:20)
   n0: 10000 0x3: main (m.c:6)
 n0: 10000 in 4 places, all below massif's threshold (1.00%)
"""


def check(is_good, *what):
    count[bool(is_good)] += 1
    if not is_good:
        print("FAIL", *what)


class FlameBrowser(webdriver.Browser):
    def frame(self, name):
        return self.find(f"//*[local-name()='g' and starts-with(*[local-name()='title'], '{name} (')]")

    def shown(self):
        """Names and widths of the frames that can be seen, as [name, x, width]."""
        return self.js("""return [...document.querySelectorAll('.frame')].filter(
            g => getComputedStyle(g).display !== 'none').map(g => [g.querySelector('title').textContent.split(' (')[0],
            Number(g.querySelector('rect').getAttribute('x')), Number(g.querySelector('rect').getAttribute('width'))])""")


def check_first_view(b):
    shown = b.shown()
    check(len(shown) == 8, "frames", shown)
    check(["main", 128.0, 1062.0] in shown, "main", shown)
    check(b.js("return getComputedStyle(document.getElementById('search')).display") != "none", "no search button")
    check(b.js("return getComputedStyle(document.getElementById('reset')).display") == "none", "reset without zoom")
    check(b.js("return performance.getEntriesByType('resource').length") == 0, "asks for more than itself")
    # No text is wider than its frame.
    wide = b.js("""return [...document.querySelectorAll('.frame')].filter(g =>
        g.querySelector('text').getComputedTextLength() > Number(g.querySelector('rect').getAttribute('width')))
        .map(g => g.textContent)""")
    check(not wide, "text wider than its frame", wide)


def texts(b):
    return b.js("return [...document.querySelectorAll('.frame > text')].map(t => t.textContent)")


def check_shortening(b):
    """The script shortens names as the file did."""
    before = texts(b)
    b.click(b.frame("late"))
    b.click(b.find("//*[@id='reset']"))
    check(texts(b) == before, "names shortened by the script", texts(b), before)
    generic = "void main::{lambda(auto:1&&)#1}::operator()<{lambda(auto:1&&)#1}&>({lambda(auto:1&&)#1}&) const"
    check(b.js(f"return shorten('{generic}', 12)") == "operator()", "a call operator that is a template")


# The widths of the window and the picture, the first frame, the end of the search button, texts that are too long or outside.
MEASURE = """const box = (e) => e.getBoundingClientRect(), frames = [...document.querySelectorAll('.frame')];
    const first = box(document.querySelector('.frame rect'));
    return [innerWidth, box(document.documentElement).width, [first.left, first.width], box(document.getElementById('search')).right,
        frames.filter(g => g.querySelector('text').textContent &&
            g.querySelector('text').getBBox().width > Number(g.querySelector('rect').getAttribute('width'))).map(g => g.textContent),
        ['title', 'subtitle', 'legend'].filter(id => {
            const r = box(document.getElementById(id)); return r.left < 0 || r.right > innerWidth })]"""


def check_width(b, url):
    """As wide as the window, even after a resize; nothing overlaps, nothing is outside."""
    b.call("POST", "/url", {"url": url})
    for width in (700, 1500, 400):
        b.call("POST", "/window/rect", {"width": width, "height": 500})
        for _ in range(1000):  # one reading: the width may change more than once
            inner, whole, frame, right, wide, outside = b.js(MEASURE)
            if abs(inner - width) < 40 and abs(frame[1] - (whole - 20)) < 0.1:
                break
            time.sleep(0.05)
        check(abs(whole - inner) < 20 and abs(frame[0] - 10) < 0.1 and abs(frame[1] - (whole - 20)) < 0.1,
              "width of the window", width, inner, whole, frame)
        check(abs(right - (whole - 10)) < 1, "search button", width, right)
        check(not wide, "text wider than its frame", width, wide)
        check(not outside, "outside of the window", width, outside)
    narrow = [t for t in texts(b) if t.startswith("push")]
    check(narrow == ["push_back"], "a narrow frame shows the last identifier", texts(b))
    b.call("POST", "/window/rect", {"width": 1300, "height": 500})


def check_zoom(b):
    b.click(b.frame("late"))
    shown = {s[0]: s[1:] for s in b.shown()}
    check(sorted(shown) == ["all", "late", "main", "new_node"], "zoomed", shown)
    check(all(s == [10.0, 1180.0] for s in shown.values()), "zoomed widths", shown)
    check(b.js("return document.querySelectorAll('.caller').length") == 2, "callers are not pale")
    b.click(b.find("//*[@id='reset']"))
    check_first_view(b)
    b.click(b.frame("parse(char const*)"))
    shown = [s for s in b.shown() if s[0].startswith("std::vector")]
    check(len(shown) == 1 and abs(shown[0][2] - 1180 * 5 / 8) < 0.02, "zoomed inner width", shown)
    b.keys("\ue00c")
    check_first_view(b)
    b.click(b.frame("new_node"))
    b.click(b.frame("all"))
    check_first_view(b)


def check_hover(b):
    b.hover(b.frame("late"))
    check(b.text("details") == "late (10,000 bytes, 10.00%)", "hover", b.text("details"))
    b.hover(b.find("//*[@id='title']"))
    check(b.text("details") == "", "hover ends", b.text("details"))


def marked(b):
    return sorted(b.js("return [...document.querySelectorAll('.match title')].map(t => t.textContent.split(' (')[0])"))


def check_search(b):
    b.click(b.find("//*[@id='search']"))
    b.answer("NEW_node")
    check(b.text("matched") == "Matched: 40.00%" and marked(b) == ["new_node", "new_node"], "search", b.text("matched"))
    b.click(b.find("//*[@id='search']"))
    check(b.text("matched") == "" and not marked(b), "search is not taken back")
    b.keys("\ue009", "f")
    b.answer("parse|new_node")
    check(b.text("matched") == "Matched: 90.00%" and len(marked(b)) == 3, "Ctrl-F, a match above a match",
          b.text("matched"), marked(b))
    b.keys("\ue00c")
    b.keys("\ue009", "f")
    b.answer("push_back(")
    check(b.text("matched") == "Matched: 50.00%", "a text that is no expression", b.text("matched"))
    b.keys("\ue00c")
    check(b.text("matched") == "", "escape")


def check_address(b, url):
    """The address restores a view; an invalid address shows everything."""
    b.click(b.frame("late"))
    b.keys("\ue009", "f")
    b.answer("a&b=%|late")
    address = b.js("return location.href")
    check(address.startswith(url + "#zoom="), "address", address)
    before = b.shown()
    b.call("POST", "/url", {"url": "about:blank"})
    b.call("POST", "/url", {"url": address})
    check(b.shown() == before and len(before) == 4, "zoomed by address", b.shown())
    check(b.text("matched") == "Matched: 10.00%" and marked(b) == ["late"], "searched by address", b.text("matched"))
    b.keys("\ue00c")
    check(b.js("return location.href") == url + "#", "address of the first view", b.js("return location.href"))
    for nonsense in ("#zoom=x,y", "#zoom=77,1", "#zoom=", "#search=", "#a=b&&=", "#%"):
        b.js("location.hash = arguments[0]; window.dispatchEvent(new Event('hashchange'))", nonsense)
        check_first_view(b)
        check(b.text("matched") == "", "matched by " + nonsense)
    b.call("POST", "/url", {"url": "about:blank"})
    b.call("POST", "/url", {"url": url})


def check_places(b):
    """Buttons and the matched share do not overlap, and are above the frames."""
    b.click(b.frame("late"))
    b.keys("\ue009", "f")
    b.answer("late")
    boxes = b.js("""return ['reset', 'matched', 'search'].map(id => {
        const r = document.getElementById(id).getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom]})""")
    check(boxes[0][1] < boxes[1][0] and boxes[1][1] < boxes[2][0], "texts overlap", boxes)
    top = b.js("return Math.min(...[...document.querySelectorAll('.frame:not(.hidden) rect')].map(r => r.getBoundingClientRect().top))")
    check(max(box[3] for box in boxes) < top, "texts over frames", boxes, top)
    b.keys("\ue00c")


def check_print(b):
    pdf = base64.b64decode(b.call("POST", "/print", {}))
    check(pdf[:5] == b"%PDF-" and len(pdf) > 3000, "printing")


def check_without_script(directory, url):
    b = FlameBrowser(directory, False)
    b.call("POST", "/url", {"url": url})
    text = b.call("GET", f"/element/{b.frame('new_node')[ELEMENT]}/text")
    check("new_node" in text, "name without script", text)
    rect = b.call("GET", f"/element/{b.find('//*[@id=' + repr('search') + ']')[ELEMENT]}/displayed")
    check(rect is False, "buttons without script")
    b.close()


def check_all(b, url):
    b.call("POST", "/url", {"url": url})
    check(b.text("title") == './program <a> & "b"', "title", b.text("title"))
    for part in (check_first_view, check_shortening, check_zoom, check_hover, check_search, check_places, check_print):
        part(b)
    check_address(b, url)
    if SCREENSHOT:
        b.screenshot(SCREENSHOT)


def main():
    webdriver.require()
    with tempfile.TemporaryDirectory() as directory:
        open(f"{directory}/profile", "w").write(PROFILE)
        subprocess.run([REPORT, "--x-size=1200", f"--flame={directory}/flame.svg", f"{directory}/profile"], check=True)
        open(f"{directory}/narrow", "w").write(PROFILE.replace("50000", "22000"))
        subprocess.run([REPORT, f"--flame={directory}/wide.svg", f"{directory}/narrow"], check=True)
        url = f"file://{directory}/flame.svg"
        b = FlameBrowser(directory, True)
        try:
            check_all(b, url)
            check_width(b, f"file://{directory}/wide.svg")
        finally:
            b.close()
        check_without_script(directory, url)
    print(f"{count[True]} passed, {count[False]} failed")
    sys.exit(1 if count[False] else 0)


main()
