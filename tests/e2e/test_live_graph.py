"""The heap graph of a running program by HTTP: made by POST, one at a time, and shown by the page of --listen."""

import http.client
import json
import os
import signal
import threading

from harness import test
from live_lib import Listening
from report_lib import Page
from test_graph_page import check_sums

ROWS = """return [...document.querySelectorAll('#graph-table tbody tr[data-row]')].map(tr => [
    tr.querySelector('.function').title, tr.children[3].title])"""


class Graphed(Listening):
    def post(self, path, status=200, **headers):
        connection = http.client.HTTPConnection(*self.address(), timeout=200)
        connection.request("POST", path, headers={k.replace("_", "-"): v for k, v in headers.items()})
        answer = connection.getresponse()
        body = answer.read()
        self.t.equal("status of POST %s (%r)" % (path, body[:100]), answer.status, status)
        connection.close()
        return body

    def finish(self):
        self.end()
        self.t.wait_until("the end", self.is_over)
        os.kill(self.server_pid, signal.SIGKILL)
        self.t.wait_until("the server ends", self.has_no_server)


@test("live-graph/post", limit=120)
def post(t):
    """By request: the program goes on, its blocks are all there, and the last graph stays."""
    m = Graphed(t, ["--listen-linger=3600", "--record=r"])
    t.check(b"POST makes one" in m.get("/graph.json", 404), "there is none")
    m.more()
    first = json.loads(m.post("/graph.json"))
    check_sums(t, first)
    t.equal("process", first["pid"], m.target_pid())
    t.check(first["stopped_ms"] > 0 and first["blocks"] > 0, first["stopped_ms"])
    t.equal("the same again", json.loads(m.get("/graph.json?pid=%d" % m.target_pid())), first)
    for _ in range(5):
        m.more()
    second = json.loads(m.post("/graph.json?pid=%d" % m.target_pid()))
    t.equal("more blocks", second["blocks"] - first["blocks"], 5)
    t.check(json.loads(m.get("/profile.json"))["inspection"], "the inspection that comes with it")
    t.equal("its number", json.loads(m.get("/profile.json"))["live"]["graph"], 2)
    m.post("/graph.json?pid=1", 404)
    m.end()
    t.wait_until("the end", m.is_over)
    t.equal("after the end", json.loads(m.get("/graph.json")), second)
    m.post("/graph.json", 503)
    os.kill(m.server_pid, signal.SIGKILL)
    t.wait_until("the server ends", m.has_no_server)


@test("live-graph/refused", limit=120)
def refused(t):
    """Other methods and paths, pages of other sites, and anyone of --listen-open."""
    m = Graphed(t, ["--listen-linger=3600"])
    host = "%s:%d" % m.address()
    m.post("/profile.json", 405)
    m.post("/", 405)
    for origin in ("http://example.com", "null", "https://" + host + ".example.com", "file://"):
        m.post("/graph.json", 403, Origin=origin)
    m.post("/graph.json", 403, Sec_Fetch_Site="cross-site")
    m.get("/graph.json", 404)
    m.post("/graph.json", 200, Origin="http://" + host, Sec_Fetch_Site="same-origin")
    m.finish()
    m = Graphed(t, ["--listen-open", "--listen-linger=3600"])
    t.check(b"--listen-token" in m.post("/graph.json", 403), "with --listen-open")
    m.finish()
    token = os.path.join(t.directory, "token")
    with open(os.open(token, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
        file.write("0123456789abcdef\n")
    m = Graphed(t, ["--listen-token=" + token])
    m.post("/graph.json", 401)
    m.post("/graph.json", 200, Authorization="Bearer 0123456789abcdef")
    m.end()


@test("live-graph/one-at-a-time", limit=120)
def one_at_a_time(t):
    """While ptmem does not answer, a second request is refused; the first one is answered then."""
    m = Graphed(t, ["--listen-linger=3600"])
    found = []

    def ask():
        connection = http.client.HTTPConnection(*m.address(), timeout=200)
        connection.request("POST", "/graph.json")
        answer = connection.getresponse()
        found.append((answer.status, answer.read()))
        connection.close()

    os.kill(m.ptmem.pid, signal.SIGSTOP)
    both = [threading.Thread(target=ask) for _ in range(2)]
    for one in both:
        one.start()
    t.wait_until("one of two is refused", lambda: found)
    os.kill(m.ptmem.pid, signal.SIGCONT)
    for one in both:
        one.join()
    t.equal("status", [status for status, _ in found], [409, 200])
    t.check(b"is being made" in found[0][1] and json.loads(found[1][1])["blocks"] > 0, found)
    m.finish()


@test("live-graph/page", limit=120)
def page(t):
    """The tab has a button, and shows what another client had made."""
    m = Graphed(t, ["--listen-linger=3600"])
    with Page(t, m.url()) as p:
        p.press("#tab-graph")
        t.equal("rows before", p.js(ROWS), [])
        p.press("#graph-request button")
        p.until("a graph", "document.querySelector('#graph-table tbody tr')")
        data = json.loads(m.get("/graph.json"))
        t.check("stopped for" in p.text("graph-sum"), p.text("graph-sum"))
        t.equal("sum", p.js("return document.getElementById('graph-sum').title"), "%s bytes" % format(data["bytes"], ","))
        p.renewed()
        rows = p.js(ROWS)
        for _ in range(3):
            m.more()
        other = json.loads(m.post("/graph.json"))
        p.until("another graph", "ptmem.reports.graph.json && ptmem.reports.graph.json.blocks === %d" % other["blocks"])
        t.check(p.js(ROWS) != rows, "rows")
        m.end()
        p.until("the end", "document.getElementById('live').dataset.state === 'ended'")
        t.check(not p.js("return document.getElementById('graph-request')"), "nothing can be made any more")
        t.equal("sum at the end", p.js("return document.getElementById('graph-sum').title"), "%s bytes" % format(other["bytes"], ","))
        t.equal("errors of scripts", [e["message"] for e in p.call("POST", "/se/log", {"type": "browser"}) if e["level"] == "SEVERE"
                                      and "favicon" not in e["message"]], [])
    os.kill(m.server_pid, signal.SIGKILL)
    t.wait_until("the server ends", m.has_no_server)
