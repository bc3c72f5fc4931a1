"""The report of --listen in a real Chromium: it follows the program, keeps what is selected, and says when it cannot."""

import http.client
import http.server
import json
import os
import re
import signal
import subprocess
import threading
import time

from harness import BUILD, test
from live_lib import Listening, stacks
from report_lib import Page


class Relay(http.server.ThreadingHTTPServer):
    """Between the page and the server: counts requests for the profile, and holds or breaks their connections."""

    daemon_threads = True

    def __init__(self, m):
        super().__init__(("127.0.0.1", 0), Handler)
        self.m, self.lock = m, threading.Lock()
        self.count = self.open = self.most_open = self.waiting = 0
        self.flows = threading.Event()
        self.flows.set()
        self.is_broken = False
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return "http://127.0.0.1:%d/" % self.server_address[1]

    def step(self, n):
        with self.lock:
            self.count += n > 0
            self.open += n
            self.most_open = max(self.most_open, self.open)

    def wait(self):
        """Until requests are relayed; self.waiting: those that are not."""
        with self.lock:
            self.waiting += 1
        self.flows.wait()
        with self.lock:
            self.waiting -= 1


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = self.ask_for_profile() if self.path.startswith("/profile.json") else self.fetch()
        if answer:
            self.send(*answer)

    def ask_for_profile(self):
        relay = self.server
        relay.step(1)
        try:
            relay.wait()
            return None if relay.is_broken else self.fetch()
        finally:
            relay.step(-1)  # before the page has the answer, and may ask again

    def fetch(self):
        connection = http.client.HTTPConnection(*self.server.m.address(), timeout=200)
        connection.request("GET", self.path, headers={"Host": self.headers["Host"], "Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer, body

    def send(self, answer, body):
        self.send_response(answer.status)
        for name in ("Content-Type", "Content-Encoding"):
            if answer.getheader(name):
                self.send_header(name, answer.getheader(name))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def live_at(data, seconds):
    """Bytes of the cells of a recording that are live at the end of the interval with this time."""
    i = int(seconds * 1000) // data["timeline"]["interval"]
    cells = data["cells"]
    return sum(size for size, born, died in zip(cells["bytes"], cells["born"], cells["died"]) if born <= i and not 0 <= died <= i)


@test("live-report/follows", limit=120)
def _(t):
    """At first it shows what is live now; a moment, a range and all else that is chosen stays while numbers come."""
    m = Listening(t)
    with Page(t, m.url()) as p:
        t.equal("follows the end", [p.sum(), p.address()], ["7,000 bytes", ""])
        for blocks in (8, 9, 10):
            p.renewed()
            m.more()
            p.has_blocks(blocks)
            t.equal("live now", p.sum(), "%s,000 bytes" % blocks)
        p.renewed()
        t.equal("state", p.state(), ["running", "Live"])
        check_choices(t, m, p)
        check_moment(t, m, p)
        check_range(t, m, p)
        p.keys("p")
        p.renewed()
        t.equal("the peak", [p.sum(), p.address()], ["13,000 bytes", p.js("return location.hash.replace(/at=[^&]*/, 'at=peak')")])
        p.js("document.getElementById('timeline').focus()")
        p.keys("\ue010") # End
        m.more()
        p.has_blocks(14)
        t.equal("the end again", p.sum(), "14,000 bytes")
        t.equal("errors of scripts", [e["message"] for e in p.call("POST", "/se/log", {"type": "browser"}) if e["level"] == "SEVERE"
                                      and "favicon" not in e["message"]], [])
    m.end()


def check_choices(t, m, p):
    p.press("#direction [data-value=up]")
    p.press("#unit [data-value=blocks]")
    p.press("#tab-sites")
    p.press("#panel .twist")
    p.js("""const f = document.getElementById('find'); f.value = 'hold'; f.dispatchEvent(new Event('input', {bubbles: true}));
         const b = ptmem.flame.rows[2][0]; ptmem.go({zoom: ptmem.flame.pathOf(b)});
         document.querySelector('[data-sort=name]').click(); document.querySelector('[data-sort=name]').focus()""")
    before = p.view()
    t.check(before[8] and before[12] and before[13] and before[14] == "name", "something of each is chosen: %s" % before)
    m.more()
    p.has_blocks(11)
    p.renewed()
    t.equal("what is chosen", p.view(), before)


def check_moment(t, m, p):
    p.click_at(8000)
    t.equal("a moment", p.sum(), "8,000 bytes")
    at = p.js("return ptmem.profile.time[ptmem.state.selection.i]")
    m.more()
    p.has_blocks(12)
    p.renewed()
    t.equal("the same moment", p.sum(), "8,000 bytes")
    t.equal("as the recording", live_at(json.loads(m.get("/profile.json")), at), 8000)
    width = p.js("return ptmem.profile.timeline.interval") / 1000
    t.check(abs(p.js("return ptmem.profile.time[ptmem.state.selection.i]") - at) <= width, "its time")


def check_range(t, m, p):
    p.click_at(8000, 10000)
    t.equal("growth in a range", p.sum(), "2,000 bytes")
    t.equal("where intervals are four times as long", p.js("""const s = ptmem.state, p = ptmem.profile, { a, b } = s.selection;
        const longer = Object.create(p, { timeline: { value: { ...p.timeline, interval: 4 * p.timeline.interval } } });
        s.follow(longer); const now = s.selection; s.profile = p; s.selection = { kind: "range", a, b };
        return [now.kind, now.a - Math.floor(a / 4), now.b - Math.floor(b / 4)]"""), ["range", 0, 0])
    m.more()
    p.has_blocks(13)
    p.renewed()
    t.equal("the same range", p.sum(), "2,000 bytes")
    hash_ = p.address()
    p.js("window.before = ptmem")
    p.call("POST", "/refresh")
    p.until("the report again", "!window.before && window.ptmem && document.querySelector('#panel tr')")
    t.check("mode=growth" in hash_ and "find=hold" in hash_, hash_)
    t.equal("the same view after a reload", p.sum(), "2,000 bytes")


def names(json_bytes):
    """The functions of JSON's call paths, without their lines."""
    return {tuple(frame[0] for frame in stack) for stack in stacks(json_bytes)}


@test("live-report/earlier", limit=300)
def _(t):
    """Blocks from before the attach have the names while the program runs that they have in the end, in all that is served."""
    m = Listening(t, ["--record=r"], attach=True)
    for _ in range(2):
        m.more()
        live = names(m.get("/profile.json"))
        before = ("[allocated before attach]", "[zeros]")
        t.check(before in live, "%s is not in %s" % (before, live))
        t.equal("/recording", names(m.report("--format=json")), live)
    raw = os.path.join(m.cwd, "heap")
    with open(raw, "wb") as file:
        file.write(m.get("/debug/pprof/heap"))
    said = t.run([t.pprof(), "-traces", "-unit=B", raw], cwd=m.cwd).out.decode()
    t.check(re.search(r"7000B +\[allocated before attach\]\n +\[zeros\]\n", said), said)
    with Page(t, m.url()) as p:
        p.renewed()
        t.check("[allocated before attach]" in p.text("areas"), p.text("areas"))
        t.check({*before} <= set(p.js("return ptmem.flame.rows.flat().map(b => ptmem.stacks.names.functions[b.fn]?.name)")), "the flame graph")
    m.ptmem.send_signal(signal.SIGTERM)
    t.equal("status of ptmem", m.ptmem.wait(), 0)
    final = t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", os.path.join(m.cwd, "r")])
    t.equal("the recording", names(final.out), live)
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)


@test("live-report/axis", limit=120)
def _(t):
    """The box at a pointer that rests follows the axis. Ticks are round, the ends have the time of day, the peak's label is legible."""
    begun = int(time.time() * 1000) / 1000
    m = Listening(t)
    with Page(t, m.url()) as p:
        p.pointer(("move", *p.js("const r = document.getElementById('timeline').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 80]")))
        seen = []
        for _ in range(3):
            m.more()
            p.renewed()
            tip, wanted = p.js(TIP)
            t.equal("the box", tip, wanted)
            seen.append(tip[0])
        t.equal("different times: %s" % seen, len(set(seen)), 3)
        p.hide()
        start, end, *ends = p.js("""return [ptmem.profile.meta.start, ptmem.profile.end,
            document.getElementById('clock-start').textContent, document.getElementById('clock-end').textContent]""")
        t.check(begun <= start <= time.time(), "start at %s, begun at %s" % (start, begun))
        t.check(ends[0].startswith(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.localtime(start))), ends)
        t.check(ends[1].endswith(time.strftime("%H:%M:%S", time.localtime(int((start + end) * 1000) // 1000))), ends)
        check_zones(t, p)
        check_ticks(t, p)
        check_label(t, p)
    m.end()


@test("live-report/flame-tip", limit=120)
def _(t):
    """The box at a pointer that rests on a frame says what the frame has now."""
    m = Listening(t)
    with Page(t, m.url()) as p:
        p.pointer(("move", *p.js("const r = document.getElementById('flame').getBoundingClientRect(); return [r.left + r.width / 2, r.top + 9]")))
        for live in (8000, 9000, 10000):
            m.more()
            p.renewed()
            tip, wanted = p.js("return [document.querySelector('#tip dd').textContent, format.bytes(%d) + ' (' + format.count(%d) + ')']" % (live, live))
            t.equal("bytes", tip, wanted)
            t.check(p.js("return ptmem.flame.rows.flat().includes(ptmem.flame.hover)"), "the frame is outlined")
    m.end()


# What the box at the pointer says: its time and the first value; and what it must say.
TIP = """const t = ptmem.timeline, p = ptmem.profile, share = (t.pointer - 74) / (t.canvas.clientWidth - 74 - 14);
    let i = 0;
    p.time.forEach((time, k) => { if (Math.abs(time - share * p.end) <= Math.abs(p.time[i] - share * p.end)) i = k; });
    const tip = document.getElementById('timeline-tip');
    return [[tip.querySelector('strong').textContent.split(' \u00b7 ')[0], tip.querySelector('dd').textContent],
            [format.time(p.time[i], 's'), format.bytes(p.timeline.live_bytes[i])]]"""


def check_zones(t, p):
    for zone, wanted in (("Asia/Kolkata", ["1970-01-02 05:30:00", "UTC+5:30"]), ("UTC", ["1970-01-02 00:00:00", "UTC"]),
                         ("America/New_York", ["1970-01-01 19:00:00", "UTC\u22125"])):
        p.call("POST", "/goog/cdp/execute", {"cmd": "Emulation.setTimezoneOverride", "params": {"timezoneId": zone}})
        t.equal(zone, p.js("return [format.date(86400), format.zone(86400)]"), wanted)
    t.equal("the same day and the next one", p.js("return [format.clock(3600, 0, true), format.clock(90000, 0, true)]"),
            ["20:00:00.000", "1970-01-01 20:00:00"])


def check_ticks(t, p):
    for end, wanted in ((0.9, "0 s, 100 ms, 200 ms"), (4, "0 s, 500 ms, 1 s"), (9.9, "0 s, 1 s, 2 s"), (45, "0 s, 5 s, 10 s"),
                        (125, "0 s, 15 s, 30 s"), (400, "0 s, 1 min, 2 min"), (800, "0 s, 2 min, 4 min"), (5400, "0 s, 10 min, 20 min"),
                        (9000, "0 s, 15 min, 30 min"), (20000, "0 s, 1 h, 2 h"), (86400, "0 s, 3 h, 6 h"), (3456000, "0 s, 120 h, 240 h")):
        ticks = p.js("return format.timeTicks(arguments[0], 10).map((v) => format.tick(v, 's'))", end)
        t.check(", ".join(ticks[:3]) == wanted and len(ticks) <= 11, "ticks up to %s s: %s" % (end, ticks))


def check_label(t, p):
    """The label of the peak is near it, but on no line: with resident memory a little above the heap, flat or growing."""
    for live in ("p.timeline.live_bytes", "p.time.map((time) => Math.round(1e6 * time / p.end))"):
        box, peak, *lines = p.js("""const t = ptmem.timeline, p = ptmem.profile, live = Array.from(%s);
            Object.assign(p.timeline, { live_bytes: live, peak_bytes: live, rss: live.map((v) => 1.06 * v) });
            p.peakBytes = Math.max(...live);
            p.peakTime = p.time[live.indexOf(p.peakBytes)];
            t.areas.rows = [live];
            t.setScale();
            t.draw();
            const line = (values) => values.map((v, i) => [t.x(p.time[i]), t.y(v)]);
            return [t.peakLabel, [t.x(p.peakTime), t.y(p.peakBytes)], line(live), line(p.timeline.rss)]""" % live)
        t.check(max(abs(box["left"] - peak[0]), abs(box["top"] - peak[1])) < 120, "the label at %s, the peak at %s" % (box, peak))
        on = [y for line in lines for i, (x, y) in enumerate(line) if i and line[i - 1][0] < box["right"] and x > box["left"]
              and min(y, line[i - 1][1]) < box["bottom"] and max(y, line[i - 1][1]) > box["top"]]
        t.equal("lines on the label", on, [])


@test("live-report/connection", limit=120)
def _(t):
    """One request at a time, none while the page is hidden; a lost connection is shown, and found again."""
    m = Listening(t)
    relay = Relay(m)
    with Page(t, relay.url()) as p:
        p.renewed()
        relay.flows.clear()
        t.wait_until("a request that waits", lambda: relay.waiting == 1)  # the one of before may be under way
        count = relay.count
        p.js("document.dispatchEvent(new Event('visibilitychange'))")
        time.sleep(2.5)
        t.equal("requests beside the one that waits", relay.count - count, 0)
        relay.flows.set()
        p.renewed()
        p.hide()
        t.wait_until("no request is open", lambda: relay.open == 0)
        count = relay.count
        m.more()
        time.sleep(2.5)
        t.equal("requests of a hidden page", relay.count - count, 0)
        p.show()
        p.has_blocks(8)
        relay.is_broken = True
        p.until("lost", "document.getElementById('live').dataset.state === 'lost'")
        m.more()
        count = relay.count
        t.wait_until("further tries", lambda: relay.count > count + 1)
        text = p.state()[1]
        t.check(text.startswith("Connection lost") and "up to " + p.js("return format.time(ptmem.profile.end, 's')") in text, text)
        t.equal("what is shown", p.sum(), "8,000 bytes")
        relay.is_broken = False
        p.has_blocks(9)
        p.until("found again", "document.getElementById('live').dataset.state === 'running'")
        t.equal("most requests at a time", relay.most_open, 1)
        relay.is_broken = True
        p.until("lost", "document.getElementById('live').dataset.state === 'lost'")
        p.press("#tab-sites")
        t.equal("the report still works", p.js("return document.querySelector('#tabs [aria-selected=true]').textContent"), "Call sites")
    relay.shutdown()
    relay.server_close()
    m.end()


@test("live-report/ends", limit=120)
def _(t):
    """The last that is shown is the end, and why; then nothing is asked."""
    m = Listening(t)
    with Page(t, m.url()) as p:
        m.more()
        p.press("#tab-leaks")
        p.until("the table", "document.querySelector('#panel table')")
        t.check("Live now" in p.text("panel"), p.text("panel"))
        m.end()
        p.until("the end", "document.getElementById('live').dataset.state === 'ended'")
        t.check("Live at the end" in p.text("panel"), p.text("panel"))
        t.check(p.state()[1].startswith("The program has ended."), p.state())
        t.equal("allocated in all", p.blocks(), 8)
        t.equal("live at the end", p.sum(), "0 bytes")
        t.check("exited 5" in p.text("origin"), p.text("origin"))
        t.wait_until("the server ends", m.has_no_server)
    m = Listening(t, attach=True)
    with Page(t, m.url()) as p:
        m.more()
        live = m.live()
        m.ptmem.send_signal(signal.SIGTERM)
        t.equal("status of ptmem", m.ptmem.wait(), 0)
        p.until("the end", "document.getElementById('live').dataset.state === 'ended'")
        t.check(p.state()[1].startswith("ptmem has detached"), p.state())
        t.equal("live when ptmem left", p.sum(), "%s bytes" % format(int(live), ","))
        t.wait_until("the server ends", m.has_no_server)
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)


@test("live-report/leaving", limit=120)
def _(t):
    """While ptmem detaches, and writes the files of another process, the page says so; then it shows the end."""
    directory = t.subdirectory()
    other = subprocess.Popen([t.target("gcc-O2-pie", "monitored")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal("the program's line", other.stdout.readline(), b"ready\n")
    m = Listening(t, ["-p", str(other.pid), "--massif-out-file=%s/fifo.%%p" % directory], attach=True)
    fifos = [os.path.join(directory, "fifo.%d" % pid) for pid in (other.pid, m.program.pid)]
    for path in fifos:
        os.mkfifo(path)
    with Page(t, m.url() + "?pid=%d" % m.program.pid) as p:
        m.more()
        m.ptmem.send_signal(signal.SIGTERM)
        p.until("leaving", "document.getElementById('live').dataset.state === 'leaving'")
        t.check(p.state()[1].startswith("ptmem is detaching."), p.state())
        t.equal("state of the other", json.loads(m.get("/profile.json?pid=%d" % other.pid))["live"]["state"], "left")
        t.equal("health", m.get("/healthz"), b"finishing\n")
        p.renewed()
        t.equal("still so", p.state()[0], "leaving")
        read(fifos[0])
        p.until("the end", "document.getElementById('live').dataset.state === 'ended'")
        t.check(p.state()[1].startswith("ptmem has detached"), p.state())
        t.equal("allocated meanwhile", p.blocks(), 1)
    read(fifos[1])
    t.equal("status of ptmem", m.ptmem.wait(), 0)
    for program in (other, m.program):
        program.stdin.close()
        t.equal("status of the program", program.wait(), 5)
    t.wait_until("the server ends", m.has_no_server)


def read(path):
    with open(path, "rb") as file:
        file.read()


@test("live-report/linger")
def _(t):
    """--listen-linger: the end can be fetched after it; the server of a program that nobody looked at, too."""
    m = Listening(t, ["--listen-linger=3600"])
    m.more()
    seconds = m.metrics()["process_cpu_seconds_total"]
    m.end()
    t.wait_until("the end", lambda: b"ended" in m.get("/healthz", 503) if m.is_over() else False)
    found = m.metrics()
    t.check(found["process_cpu_seconds_total"] >= seconds, "no CPU time is lost: %s, before %s" % (found, seconds))
    t.equal("metrics", [found["ptmem_heap_" + k] for k in ("live_bytes", "allocated_bytes_total", "frees_total")], [0, 8000, 8])
    data = json.loads(m.get("/profile.json"))
    t.equal("profile", [sum(data["leaves"]["bytes"]), data["timeline"]["live_bytes"][-1], data["live"]["state"], data["meta"]["exit"]],
            [8000, 0, "ended", "exited 5"])
    t.check(m.get("/debug/pprof/heap?seconds=3000"), "a difference ends with the program")
    os.kill(m.server_pid, signal.SIGKILL)
    t.wait_until("the server ends", m.has_no_server)


@test("live-report/linger-signals")
def _(t):
    """Signals that end programs end the server, but not before ptmem's end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        m = Listening(t, ["--listen-linger=3600"])
        os.kill(m.server_pid, number)
        m.is_unharmed()
        m.end()
        t.wait_until("the end", m.is_over)
        os.kill(m.server_pid, number)
        t.wait_until("the server ends", m.has_no_server)
