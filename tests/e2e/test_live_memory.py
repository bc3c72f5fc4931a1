"""What memory consists of, in the report of --listen: each inspection as soon as it is made, whoever asked for it."""

import json
import os
import signal

from harness import test
from inspect_lib import as_json, check_same
from live_lib import Listening
from report_lib import Page, embedded

NEWEST = "ptmem.profile.raw.inspection"


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


class Inspected(Listening):
    """targets/monitored under ptmem --listen, which is told to inspect it."""

    def inspect(self, number):
        """What the monitor command has written."""
        path = os.path.join(self.cwd, "%d.json" % number)
        result = self.say("inspect", path, pid=self.target_pid())
        self.t.equal("inspect (%r)" % result.err, result.status, 0)
        return read(path)

    def end_server(self):
        os.kill(self.server_pid, signal.SIGKILL)
        self.t.wait_until("the server ends", self.has_no_server)

    def profile(self):
        return json.loads(self.get("/profile.json"))

    def fetched(self):
        """The JSON of /recording."""
        path = os.path.join(self.cwd, "fetched")
        with open(path, "wb") as file:
            file.write(self.get("/recording"))
        return as_json(self.t, path)


def shown(p):
    """Names and sizes of the rows in the page."""
    return p.js("return [...document.querySelectorAll('#memory tbody tr')].map(tr => [tr.children[0].textContent, tr.children[1].title])")


def wanted(found):
    """The same, of the JSON of an inspection."""
    rows = [(text, size) for text, size in zip(found["rows"]["text"], found["rows"]["resident"])]
    return [[text, "%s bytes" % format(size, ",")] for text, size in rows + [("all: VmRSS", sum(size for _, size in rows))]]


@test("live-report/memory", limit=120)
def _(t):
    """The tab says how to have the process read, and shows the result. All that is chosen stays: range, tab, place, focus."""
    m = Inspected(t, ["--listen-linger=3600"])
    with Page(t, m.url()) as p:
        for blocks in (8, 9, 10):
            p.renewed()
            m.more()
            p.has_blocks(blocks)
        p.click_at(8000, 10000)
        p.press("#tab-memory")
        t.equal("what to do", p.js("return document.querySelector('#request code').textContent"),
                "ptmem --monitor=%d inspect" % m.target_pid())
        t.equal("rows before", shown(p), [])
        before = p.view(), p.sum(), p.js("return location.hash.replace(/at=[^&]*/, '')")
        first = m.inspect(1)
        p.until("the first inspection", NEWEST)
        check_same(t, m.profile()["inspection"], first)
        t.equal("rows", shown(p), wanted(p.js("return " + NEWEST)))
        t.equal("what is chosen", (p.view(), p.sum(), p.js("return location.hash.replace(/at=[^&]*/, '')")), before)
        check_next(t, m, p)
        p.press("#tab-sites")
        other = p.view()
        m.inspect(3)
        p.until("the third", NEWEST + ".time !== window.second")
        t.equal("another tab", (p.view(), p.sum()), (other, before[1]))
        p.press("#tab-memory")
        last = p.js("return " + NEWEST)
        t.equal("rows of the third", shown(p), wanted(last))
        m.end()
        p.until("the end", "document.getElementById('live').dataset.state === 'ended'")
        t.equal("rows at the end", shown(p), wanted(last))
        t.check(not p.js("return document.getElementById('request')"), "nothing can be done any more")
        t.equal("errors of scripts", [e["message"] for e in p.call("POST", "/se/log", {"type": "browser"}) if e["level"] == "SEVERE"
                                      and "favicon" not in e["message"]], [])
    m.end_server()


def check_next(t, m, p):
    """A second one, while the user is at the map. What is the same is not made again."""
    p.js("window.kept = document.getElementById('memory'); window.first = %s.time" % NEWEST)
    p.renewed()
    t.check(p.js("return window.kept.isConnected && window.kept === document.getElementById('memory')"), "it was made again")
    p.js("const c = document.querySelector('canvas.map'); c.scrollIntoView({block: 'center'}); c.focus({preventScroll: true})")
    place = p.js("return [document.activeElement.getAttribute('aria-label'), scrollY]")
    m.inspect(2)
    p.until("the second", NEWEST + ".time !== window.first")
    t.equal("focus and place", p.js("return [document.activeElement.getAttribute('aria-label'), scrollY]"), place)
    t.equal("rows of the second", shown(p), wanted(p.js("return " + NEWEST)))
    p.js("window.second = %s.time" % NEWEST)


@test("live-report/memory-absent", limit=120)
def _(t):
    """A program that was never read."""
    m = Inspected(t, ["--listen-linger=3600"])
    with Page(t, m.url()) as p:
        p.press("#tab-memory")
        t.check("not been read yet" in p.text("memory"), p.text("memory"))
        m.end()
        p.until("the end", "document.getElementById('live').dataset.state === 'ended'")
        t.equal("at the end", p.text("memory"), "The memory of the process was not read.")
    m.end_server()


@test("listen/inspections")
def _(t):
    """By the monitor, by SIGUSR1, and at the end: the last one is in the page, its JSON and the recording."""
    m = Inspected(t, ["--inspect-at-exit", "--inspect-out=out.json", "--listen-linger=3600", "--record=r"])
    t.equal("none", [m.profile()["inspection"], m.fetched()["inspection"]], [None, None])
    for number in (1, 2):
        m.more()
        found = m.inspect(number)
        check_everywhere(t, m, found)
    m.ptmem.send_signal(signal.SIGUSR1)
    out = os.path.join(m.cwd, "out.json")
    t.wait_until("the report of SIGUSR1", lambda: os.path.exists(out))
    check_everywhere(t, m, read(out))
    os.unlink(out)
    m.end()
    t.wait_until("the end", m.is_over)
    check_everywhere(t, m, read(out))
    check_same(t, as_json(t, os.path.join(m.cwd, "r"))["inspection"], read(out))
    m.end_server()


def check_everywhere(t, m, found):
    check_same(t, m.profile()["inspection"], found)
    data = m.fetched()
    check_same(t, data["inspection"], found)
    t.check(data["meta"]["copy"], "it is a copy")
    path = os.path.join(m.cwd, "page")
    with open(path, "wb") as file:
        file.write(m.get("/"))
    check_same(t, embedded(path)["inspection"], found)


@test("listen/inspected-when-left")
def _(t):
    """ptmem leaves a program that runs on: what it read then is the last that is served."""
    m = Inspected(t, ["--inspect-at-exit", "--inspect-out=out.json", "--listen-linger=3600"], attach=True)
    m.more()
    m.ptmem.send_signal(signal.SIGTERM)
    t.equal("status of ptmem", m.ptmem.wait(), 0)
    t.wait_until("the end", m.is_over)
    data = m.profile()
    t.equal("state", data["live"]["state"], "left")
    check_same(t, data["inspection"], read(os.path.join(m.cwd, "out.json")))
    m.end_server()
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)
