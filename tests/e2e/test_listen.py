"""--listen: what the paths serve, exactly; access; and that no client can disturb ptmem or the program."""

import base64
import errno
import gzip
import http.client
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

from harness import BUILD, ROOT, Skip, test
from pprof_file import Pprof
from live_lib import Listening, stacks, values
from report_lib import PROFILE

FORKS = """
import os, sys
count = int(sys.argv[1])
read, write = os.pipe()
for _ in range(count):
    if os.fork() == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
print("ready", flush=True)
sys.stdin.read()
os.close(write)
for _ in range(count):
    os.wait()
"""


class Forking(Listening):
    """A program with @count children, all of which ptmem serves if they are not too many."""

    def __init__(self, t, count):
        self.t, self.cwd, self.program = t, t.subdirectory(), None
        self.ptmem = subprocess.Popen([t.ptmem(), "--listen", "--log-file=log", "--", t.program("python3"), "-c", FORKS, str(count)],
                                      cwd=self.cwd, env=t.environment(self.cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE)
        self.expect(self.ptmem, b"ready\n")

    def pids(self, metrics=None):
        return re.findall(r'ptmem_heap_live_bytes\{pid="(\d+)"', (metrics or self.get("/metrics")).decode())


def status_of(pid):
    with open("/proc/%d/status" % pid, encoding="utf-8", errors="replace") as file:
        return dict(re.findall(r"^(\w+):\t(\w+)", file.read(), re.M))


def state_of(pid):
    return status_of(pid)["State"]


def sleeps_of(pid):
    """How often the first thread of a process has gone to sleep."""
    return int(status_of(pid)["voluntary_ctxt_switches"])


def check_all(t, m, blocks):
    wanted = [1000 * blocks, blocks, 1000 * blocks]
    found = m.metrics()
    t.equal("metrics", [found["ptmem_heap_" + k] for k in ("live_bytes", "live_blocks", "allocated_bytes_total",
                                                           "allocations_total", "frees_total")], [*wanted, blocks, 0])
    t.equal("recording", values(m.report("--format=json")), wanted)
    t.equal("JSON", values(m.get("/profile.json")), wanted)
    t.equal("packed JSON", values(gzip.decompress(m.get("/profile.json", Accept_Encoding="gzip"))), wanted)
    t.equal("encoding", m.headers["Content-Encoding"], "gzip")
    page = PROFILE.search(m.get("/").decode())[1]
    t.equal("report", values(gzip.decompress(base64.b64decode(page))), wanted)
    t.equal("health", m.get("/healthz"), b"ok\n")


for name, options in (("break", ["--probes=break"]), ("jump", ["--probes=jump"]), ("recorded", ["--record=r"]),
                      ("standard-output", ["--record=-"]), ("html", ["--html=h"]), ("all-samples", ["--heap-sample=1"])):
    @test("listen/started-" + name)
    def _(t, options=options):
        m = Listening(t, options)
        check_all(t, m, 7)
        for blocks in (8, 9):
            m.more()
            check_all(t, m, blocks)
        m.end()
        t.wait_until("the server ends with ptmem", m.has_no_server)
        path = os.path.join(m.cwd, "r")
        if "--record=-" in options:
            with open(path, "wb") as file:
                file.write(m.ptmem.stdout.read())
        if os.path.exists(path):
            result = t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", path])
            t.equal("status of ptmem-report (%r)" % result.err, result.status, 0)
            t.equal("the recording at the end", values(result.out), [0, 0, 9000])


@test("listen/recording-so-far")
def _(t):
    """A recording taken while the program runs says so, and one taken after the end knows of it; neither claims an abnormal end."""
    m = Listening(t, ["--listen-linger=3600"])
    said = m.report().decode()
    t.equal("while it runs", [bool(re.search("^" + line, said, re.M)) for line in ("so far  ", "incomplete  ", "end  ")],
            [True, False, False])
    meta = json.loads(m.report("--format=json"))["meta"]
    t.equal("meta while it runs", [meta[k] for k in ("copy", "incomplete", "exit")], [True, True, None])
    m.end()
    t.wait_until("the end", m.is_over)
    said = m.report().decode()
    t.equal("after its end", [bool(re.search("^" + line, said, re.M)) for line in ("so far  ", "incomplete  ", "end  ")],
            [False, False, True])
    t.equal("samples of all", len(Pprof(m.get("/debug/pprof/allocs")).samples) > 0, True)
    t.equal("samples since a moment after the end", Pprof(m.get("/debug/pprof/allocs?seconds=3600")).samples, [])
    os.kill(m.server_pid, signal.SIGTERM)
    t.wait_until("the server ends", m.has_no_server)


@test("listen/lines", limit=300)
def _(t):
    """Names, source lines and inlined functions are those that the recording has in the end."""
    m = Listening(t, ["--record=r", "--alloc-fn=hold"])
    for letter in b"xmixi":
        m.more(bytes([letter]))
        live = stacks(m.get("/profile.json"))
    places = {(f[0], os.path.basename(f[1] or ""), bool(f[4])) for stack in live for f in stack}
    t.check({("hold_inlined", "monitored.c", True), ("main", "monitored.c", False)} <= places, places)
    raw = os.path.join(m.cwd, "heap")
    with open(raw, "wb") as file:
        file.write(m.get("/debug/pprof/heap"))
    said = t.run([t.pprof(), "-traces", "-lines", raw], cwd=m.cwd).out.decode()
    t.check(re.search(r"hold_inlined .*monitored\.c:\d+ \(inline\)", said), said)
    m.end()
    t.check(live == stacks(t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", os.path.join(m.cwd, "r")]).out),
            "the recording has the same stacks")


@test("listen/lines-replaced")
def _(t):
    """The program's file is replaced while it runs: lines come from the one that runs."""
    m = Listening.__new__(Listening)
    directory = t.subdirectory()
    path = os.path.join(directory, "program")
    shutil.copy(t.target("gcc-O2-pie", "monitored"), path)
    m.t, m.cwd, m.program = t, directory, None
    m.ptmem = subprocess.Popen([t.ptmem(), "--listen", "--log-file=log", "--", path], cwd=directory,
                               env=t.environment(directory), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    m.expect(m.ptmem, b"ready\n")
    shutil.copy(t.target("gcc-O2-pie", "empty"), path + ".new")
    os.rename(path + ".new", path)
    t.check("monitored.c" in {os.path.basename(f[1] or "") for stack in stacks(m.get("/profile.json")) for f in stack}, "lines")
    m.end()


@test("listen/attached")
def _(t):
    """Blocks from before are in the profile; after SIGTERM the program continues and the server is gone."""
    m = Listening(t, attach=True)
    before = m.metrics()["ptmem_stopped_seconds_total"]
    overhead = json.loads(m.get("/profile.json"))["meta"]["overhead"]
    after = m.metrics()["ptmem_stopped_seconds_total"]
    t.check(0 < m.metrics()["ptmem_longest_stop_seconds"] <= m.metrics()["ptmem_stopped_seconds_total"], "the longest stop is one of them")
    t.check(0 < before and 1000 * before - 0.06 < overhead < 1000 * after + 0.06, "ms stopped so far: %s" % [before, overhead, after])
    before = m.live()
    check = json.loads(m.get("/profile.json"))
    t.equal("JSON", check["timeline"]["live_bytes"][-1], before)
    m.more()
    t.equal("one more", m.live() - before, 1000)
    t.check(0 < m.metrics()["ptmem_longest_breakpoint_seconds"] <= m.metrics()["ptmem_breakpoint_seconds_total"],
            "the longest wait at a breakpoint is one of them")
    m.ptmem.send_signal(signal.SIGTERM)
    t.equal("status of ptmem", m.ptmem.wait(), 0)
    t.wait_until("the server ends", m.has_no_server)
    m.more()
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)


@test("listen/killed")
def _(t):
    """ptmem is killed: the server ends, the attached program continues."""
    m = Listening(t, attach=True)
    m.get("/healthz")
    m.ptmem.kill()
    m.ptmem.wait()
    t.wait_until("the server ends", m.has_no_server)
    m.more()
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)


def kill_server(t, m):
    os.kill(m.server_pid, signal.SIGKILL)
    t.wait_until("the server ends", m.has_no_server)


for name, attach, options in (("started", False, []), ("attached", True, ["--heap-sample=1"])):
    @test("listen/server-killed-" + name)
    def _(t, attach=attach, options=options):
        """The server is killed: another one serves all of it at the same address, without a request that fails; not for ever."""
        m = Listening(t, ["--record=r", *options], attach=attach)
        before, live, url = stacks(m.get("/profile.json")), m.live(), m.url()
        for number in range(1, 11):
            kill_server(t, m)
            t.equal("live bytes", m.live(), live)
            t.equal("stacks", stacks(m.get("/profile.json")), before)
            t.equal("messages", m.log().count("--listen: the server at %s was killed; another one takes its place\n" % url), number)
            m.server_pid = m.server()
            if number in (1, 10):
                m.is_unharmed()
                before, live = stacks(m.get("/profile.json")), m.live()
        kill_server(t, m)
        t.wait_until("the message", lambda: "--listen: the server at %s was killed too often; nothing is served from now on\n" % url in m.log())
        t.equal("connection", socket.socket().connect_ex(m.address()), errno.ECONNREFUSED)
        m.more()
        if attach:
            m.ptmem.send_signal(signal.SIGTERM)
            t.equal("status of ptmem", m.ptmem.wait(), 0)
            m.program.stdin.close()
            t.equal("status of the program", m.program.wait(), 5)
        else:
            m.end()
        t.check("--listen: its server was killed; nothing was served after that\n" in m.log(), m.log())
        result = t.run([os.path.join(BUILD, "ptmem-report"), "--format=json", os.path.join(m.cwd, "r")])
        t.equal("blocks in the recording", sum(json.loads(result.out)["leaves"]["allocations"]), (0 if attach else 7) + 3)


@test("listen/server-stopped")
def _(t):
    """A server that does not read is not waited for."""
    m = Listening(t)
    os.kill(m.server_pid, signal.SIGSTOP)
    for _ in range(20):
        m.more()
    os.kill(m.server_pid, signal.SIGCONT)
    m.is_unharmed()
    m.end()


def fifo(t, name="fifo"):
    """As a file of ptmem's: ptmem cannot finish before another process reads it."""
    path = os.path.join(t.subdirectory(), name)
    os.mkfifo(path)
    return path


@test("listen/finishing")
def _(t):
    """While ptmem writes its files the server says so, and has the final state already."""
    for attach, state, live in ((True, "left", 7000), (False, "ended", 0)):
        path = fifo(t)
        m = Listening(t, ["--massif-out-file=" + path, *(["--earlier-blocks=no"] if attach else [])], attach=attach)
        t.equal("health", m.get("/healthz"), b"ok\n")
        if attach:
            for _ in range(7):
                m.more()
        t.equal("state", json.loads(m.get("/profile.json"))["live"]["state"], "running")
        if attach:
            m.ptmem.send_signal(signal.SIGTERM)
        else:
            m.ptmem.stdin.close()
        t.wait_until("the final state", lambda s=state: json.loads(m.get("/profile.json"))["live"]["state"] == s)
        t.equal("health", m.get("/healthz"), b"finishing\n")
        t.equal("JSON", values(m.get("/profile.json"))[::2], [live, 7000])
        t.equal("recording", values(m.report("--format=json"))[::2], [live, 7000])
        t.equal("metrics", m.live(), live)
        t.check(m.ptmem.poll() is None, "ptmem has ended")
        with open(path, "rb") as file:
            t.check(b"mem_heap_B=7000\n" in file.read(), "the file")
        t.equal("status of ptmem", m.ptmem.wait(), 0 if attach else 5)
        t.wait_until("the server ends", m.has_no_server)
        if attach:
            m.program.stdin.close()
            t.equal("status of the program", m.program.wait(), 5)


def sums_of(text):
    """The sums of the columns of samples that `pprof -raw` prints."""
    rows = re.findall(r"^ +(-?\d+) +(-?\d+) +(-?\d+) +(-?\d+):", text, re.M)
    return [sum(map(int, column)) for column in zip(*rows)]


@test("listen/pprof", limit=300)
def _(t):
    """Google's pprof fetches the profiles itself; seconds= gives what was allocated since."""
    pprof = t.pprof()
    m = Listening(t, ["--probes=jump"])

    def raw(path):
        out = t.run([pprof, "-raw", m.url() + path], cwd=m.cwd)
        t.equal("status of pprof: " + out.err.decode()[:300], out.status, 0)
        return out.out.decode(), sums_of(out.out.decode())

    text, sums = raw("debug/pprof/heap")
    t.equal("heap", sums, [7000, 7, 7000, 7])
    t.check("hold" in text and "inuse_space/bytes[dflt]" in text, text)
    t.check("alloc_space/bytes[dflt]" in raw("debug/pprof/allocs")[0], "allocs shows what was allocated")
    start = time.monotonic()
    waiting = m.connect()
    waiting.sendall(b"GET /debug/pprof/heap?seconds=3 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    for _ in range(2):
        m.get("/profile.json")  # the first profile of the other request is taken by now
    m.more()
    is_in_time = time.monotonic() < start + 3
    data = b""
    while chunk := waiting.recv(65536):
        data += chunk
    t.check(time.monotonic() >= start + 3, "it lasts 3 seconds")
    path = os.path.join(m.cwd, "delta")
    with open(path, "wb") as file:
        file.write(data.split(b"\r\n\r\n", 1)[1])
    sums = sums_of(t.run([pprof, "-raw", path], cwd=m.cwd).out.decode())
    t.check(sums == [1000, 1, 1000, 1] or (not is_in_time and sums == []), "only the block since then: %s" % sums)
    out = t.run([pprof, "-raw", "-seconds=1", "-timeout=200", m.url() + "debug/pprof/heap"], cwd=m.cwd)
    t.equal("status and sums of a second without allocations: " + out.err.decode()[:300], [out.status, sums_of(out.out.decode())], [0, []])
    m.get("/debug/pprof/heap?seconds=x", 400)
    m.get("/debug/pprof/heap?seconds=3601", 400)
    m.get("/debug/pprof/heap?pid=1", 404)
    m.end()
    check_program(t, pprof)


def check_program(t, pprof):
    """The first mapping is the program, also if it is in no stack: all blocks are from before the attach."""
    m = Listening(t, attach=True)
    out = t.run([pprof, "-top", m.url() + "debug/pprof/heap"], cwd=m.cwd).out.decode()
    notes = t.run(["readelf", "-n", t.target("gcc-O2-pie", "monitored")]).out.decode()
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    t.check(out.startswith("File: monitored\nBuild ID: %s\n" % build_id), out)
    frames = json.loads(m.get("/profile.json"))["frames"]
    t.equal("frames in it", [f for f in zip(frames["function"], frames["object"]) if f[1] >= 0], [])
    m.end(0)


@test("listen/metrics-format")
def _(t):
    """What Prometheus reads: its own checker finds nothing wrong, and the other form ends as it must."""
    m = Listening(t, ["--heap-sample=512K"])
    text = m.get("/metrics")
    t.equal("interval", m.metrics()["ptmem_heap_sample_interval_bytes"], 512 << 10)
    t.check(m.headers["Content-Type"].startswith("text/plain; version=0.0.4"), m.headers["Content-Type"])
    own = m.get("/metrics", Accept="application/openmetrics-text; version=1.0.0").decode()
    t.check(m.headers["Content-Type"].startswith("application/openmetrics-text"), m.headers["Content-Type"])
    t.check(own.endswith("# EOF\n") and "# TYPE ptmem_heap_allocations counter\nptmem_heap_allocations_total{" in own, own)
    checked = t.run([t.program("promtool"), "check", "metrics"], stdin=text)
    t.equal("promtool: " + (checked.out + checked.err).decode(), checked.status, 0)
    m.end()


class Prometheus:
    """A real one, with the configuration that the documentation shows, but for the target and the interval."""

    def __init__(self, t, address):
        self.t, self.cwd = t, t.subdirectory()
        with open(os.path.join(ROOT, "doc/fleet.md"), encoding="utf-8") as file:
            shown = re.search(r"^\$ cat >prometheus.yml <<'END'\n(.*?)^> END$", file.read(), re.M | re.S)[1]
        text = re.sub(r"^> ", "", shown, flags=re.M)
        self.t.equal("places to replace", [text.count("127.0.0.1:9110"), text.count("30s")], [1, 1])
        with open(os.path.join(self.cwd, "prometheus.yml"), "w", encoding="utf-8") as file:
            file.write(text.replace("127.0.0.1:9110", address).replace("30s", "1s"))
        with open(os.path.join(self.cwd, "log"), "wb") as log:
            self.process = subprocess.Popen([t.program("prometheus"), "--config.file=prometheus.yml", "--storage.tsdb.path=data",
                                             "--web.listen-address=127.0.0.1:0"], cwd=self.cwd, stdout=log, stderr=log)
        try:
            t.wait_until("Prometheus", self.address)
        except BaseException:
            self.stop()
            raise

    def address(self):
        with open(os.path.join(self.cwd, "log"), encoding="utf-8") as file:
            found = re.search(r'msg="Listening on" address=127.0.0.1:(\d+)', file.read())
        return found and ("127.0.0.1", int(found[1]))

    def query(self, text):
        """{labels: value} of an instant query; {} until the server is ready."""
        connection = http.client.HTTPConnection(*self.address(), timeout=200)
        connection.request("GET", "/api/v1/query?" + urllib.parse.urlencode({"query": text}))
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            return {}
        return {tuple(sorted(r["metric"].items())): float(r["value"][1]) for r in json.loads(body)["data"]["result"]}

    def stop(self):
        self.process.kill()
        self.process.wait()


@test("listen/prometheus", limit=120)
def _(t):
    """A real Prometheus scrapes with the configuration of doc/fleet.md; its values are those of the program."""
    m = Listening(t)
    address = "%s:%d" % m.address()
    p = Prometheus(t, address)
    try:
        def last(selector):
            """Of the last scrape that came in time: later ones may not have, on a busy machine."""
            return p.query("last_over_time(%s[5m])" % selector)

        def values(name):
            return list(last(name).values())
        t.wait_until("a scrape", lambda: values("ptmem_heap_live_bytes") == [7000])
        labels = dict(next(iter(last("ptmem_heap_live_bytes"))))
        t.equal("labels", [labels["job"], labels["instance"], labels["pid"], os.path.basename(labels["command"])],
                ["ptmem", address, str(m.target_pid()), "monitored"])
        m.more()
        t.wait_until("the next value", lambda: values("ptmem_heap_live_bytes") == [8000])
        for name, value in (("allocated_bytes_total", 8000), ("allocations_total", 8), ("frees_total", 0), ("live_blocks", 8)):
            t.equal(name, values("ptmem_heap_" + name), [value])
        t.equal("series of ptmem", len(last('{job="ptmem",__name__=~"ptmem_.*|process_.*"}')), 19)
        m.end()
        t.wait_until("the target is down", lambda: values("up") == [0])
    finally:
        p.stop()


@test("listen/forks")
def _(t):
    """Of several processes each has its own; the report without a pid lists them."""
    m = Forking(t, 1)
    t.wait_until("two processes", lambda: len(m.pids()) == 2)
    parent, child = m.pids()
    page = m.get("/").decode()
    t.equal("links", re.findall(r'href="\?pid=(\d+)"', page), [parent, child])
    for pid in (parent, child):
        t.equal("pid", json.loads(m.get("/profile.json?pid=" + pid))["meta"]["pid"], int(pid))
    m.end(0)


@test("listen/many-processes")
def _(t):
    """An answer about as many processes as are served is complete, though the server does not run while ptmem sends it."""
    m = Forking(t, 110)
    t.wait_until("100 processes", lambda: len(m.pids()) == 100)
    server = m.server()
    os.kill(m.ptmem.pid, signal.SIGSTOP)
    t.wait_until("ptmem stops", lambda: state_of(m.ptmem.pid) == "T")
    t.wait_until("the server waits", lambda: state_of(server) == "S")
    before = sleeps_of(server)
    with m.connect() as s:
        s.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        t.wait_until("the server has asked ptmem", lambda: sleeps_of(server) > before)
        os.kill(server, signal.SIGSTOP)
        t.wait_until("the server stops", lambda: state_of(server) == "T")
        before = sleeps_of(m.ptmem.pid)
        os.kill(m.ptmem.pid, signal.SIGCONT)
        t.wait_until("ptmem has answered", lambda: sleeps_of(m.ptmem.pid) > before + 2)
        os.kill(server, signal.SIGCONT)
        answer = s.makefile("rb").read()
    t.equal("status", answer.split()[1], b"200")
    t.equal("processes", len(m.pids(answer)), 100)
    # where others use the CPUs, the history of so many takes longer than the server waits
    t.wait_until("the others to be counted", lambda: b"11 more are not served" in m.ask("/")[1])
    m.end(0)


# ---- access ----

@test("listen/host")
def _(t):
    """A page of another site, whose name resolves to this address, gets nothing: it sends its own name."""
    m = Listening(t)
    for host in ("evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "127.0.0.1:x",
                 "[::1", "", "2130706433"):
        m.get("/recording", 421, Host=host)
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:9", "10.1.2.3"):
        m.get("/healthz", Host=host)
    with m.connect() as s:
        s.sendall(b"GET /recording HTTP/1.0\r\n\r\n")
        t.check(s.makefile("rb").readline().split()[1] in (b"400", b"421"), "no Host at all")
    for header, value in (("X-Content-Type-Options", "nosniff"), ("Cross-Origin-Resource-Policy", "same-origin"),
                          ("Cache-Control", "no-store")):
        t.equal(header, m.headers[header], value)
    t.check("Access-Control-Allow-Origin" not in m.headers, "no other site may read it")
    m.is_unharmed()
    m.end()


@test("listen/other-user")
def _(t):
    """Another user of this machine gets nothing, on IPv4 and IPv6; with --listen-open everything."""
    if os.geteuid() != 0:
        raise Skip("needs root, to be another user")
    for listen, options, status in (("--listen", (), b"403"), ("--listen=[::1]:0", (), b"403"),
                                    ("--listen", ("--listen-open",), b"200")):
        m = Listening(t, options, listen)
        host, port = m.address()
        script = ("import socket, sys\ns = socket.create_connection((%r, %d))\n"
                  "s.sendall(b'GET /healthz HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n')\n"
                  "sys.stdout.buffer.write(s.makefile('rb').readline().split()[1])" % (host, port))
        said = subprocess.run([t.program("python3"), "-c", script], user=65534, group=65534, extra_groups=[],
                              stdout=subprocess.PIPE, check=False, cwd="/")
        t.equal("%s %s" % (listen, options), said.stdout, status)
        m.get("/healthz")
        m.end()


@test("listen/token")
def _(t):
    secret = "0123456789abcdef-secret"
    path = t.file("token", secret + "\n")
    for mode in (0o644, 0o640, 0o600):
        os.chmod(path, mode)
        m = Listening(t, ["--listen-token=" + path], "--listen=0.0.0.0:0")
        warning = "ptmem: warning: --listen-token: %s: others may read it (mode %03o); it should be 600\n" % (path, mode)
        t.equal("warning about mode %o in %s" % (mode, m.log()), [warning in m.log(), "others may" in m.log()], [mode != 0o600] * 2)
        if mode != 0o600:
            m.end()
    t.check(m.url().startswith("http://0.0.0.0:"), m.url())

    def basic(text):
        return "Basic " + base64.b64encode(text.encode()).decode()
    for value in ("Bearer " + secret, "bearer " + secret, basic("any:" + secret), basic(":" + secret)):
        m.get("/healthz", Authorization=value)
    for value in ("Bearer " + secret[:-1], "Bearer " + secret + "x", "Bearer ", basic("any:no"), basic(secret), "Basic !", "",
                  "Digest " + secret):
        m.get("/recording", 401, Authorization=value)
    m.get("/recording", 401)
    t.check("Basic" in m.headers["WWW-Authenticate"], m.headers)
    m.end()


@test("listen/refused-options")
def _(t):
    """Nothing is started if the server cannot be."""
    short, m = t.file("short", "short\n"), Listening(t)
    port = m.address()[1]
    ran = os.path.join(t.subdirectory(), "ran")
    for options, status, text in (
            (["--listen=%d" % port], 125, "cannot serve http://127.0.0.1:%d/: Address already in use" % port),
            (["--listen=0.0.0.0:0"], 1, "others can reach this address; it needs --listen-token=FILE or --listen-open"),
            (["--listen=[::]:0"], 1, "others can reach this address"),
            (["--listen=example.com:80"], 1, "names are not looked up"),
            (["--listen=:80"], 1, "0.0.0.0 is all of IPv4"),
            (["--listen=1.2.3.4:70000"], 1, "a port is a number up to 65535"),
            (["--listen=192.0.2.1:0", "--listen-open"], 125, "Cannot assign requested address"),
            (["--listen-open"], 1, "go with --listen"),
            (["--listen", "--listen-token=" + short], 125, "must have 16 to 256 characters"),
            (["--listen", "--listen-token=/nonexistent"], 125, "No such file"),
            (["--listen", "--listen-token=/"], 125, "Is a directory"),
            (["--listen", "--heap=no"], 1, "about the heap")):
        result = t.run([t.ptmem(), *options, "--", "/bin/sh", "-c", "echo > " + ran])
        t.equal("status of %s (%r)" % (options, result.err), result.status, status)
        t.check(text.encode() in result.err, "%r in %r" % (text, result.err))
        t.check(not os.path.exists(ran), "the program has run")
    m.end()


# ---- hostile clients ----

@test("listen/idle-connections")
def _(t):
    """1,000 silent connections: another client is served, and the number of descriptors is bounded."""
    m = Listening(t)
    idle = []
    for _ in range(1000):
        idle.append(m.connect())
    for _ in range(3):
        m.get("/healthz")
    t.check(len(os.listdir("/proc/%d/fd" % m.server_pid)) < 300, "descriptors of the server")
    m.is_unharmed()
    for s in idle:
        s.close()
    m.is_unharmed()
    m.end()


def memory(pid):
    with open("/proc/%d/statm" % pid, encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


@test("listen/huge-requests")
def _(t):
    """A request of 1 GB, in its body, its head or its address, is cut short; none of it is kept."""
    m = Listening(t)
    m.get("/healthz")
    before = memory(m.server_pid)
    for start in (b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n",
                  b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1073741824\r\n\r\n",
                  b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n40000000\r\n",
                  b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ", b"GET /"):
        sent, piece = 0, b"x" * (1 << 20)
        with m.connect() as s:
            try:
                s.sendall(start)
                while sent < 1 << 30:
                    sent += s.send(piece)
            except (ConnectionResetError, BrokenPipeError):
                pass
        t.check(sent < 1 << 30, "all of %r was taken" % start)
        t.check(memory(m.server_pid) < before + (8 << 20), "memory of the server")
    with m.connect() as s:
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
        t.equal("a body", s.makefile("rb").readline().split()[1], b"413")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        connection = http.client.HTTPConnection(*m.address(), timeout=200)
        connection.request(method, "/")
        t.equal(method, connection.getresponse().status, 405)
        connection.close()
    m.is_unharmed()
    m.end()


@test("listen/paths")
def _(t):
    """No path is used as a file's path."""
    m = Listening(t)
    for path in ("/../../../../etc/passwd", "/..%2f..%2f..%2fetc/passwd", "//etc/passwd", "/etc/passwd", "/recording/../../etc/passwd",
                 "/recording/", "/%2e%2e/", "/index.html", "/debug/pprof/profile", "/\\etc"):
        with m.connect() as s:
            s.sendall(b"GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n" % path.encode())
            answer = s.makefile("rb").read()
        t.check(answer.split()[1] in (b"404", b"400"), "%s: %r" % (path, answer[:200]))
        t.check(b"root:" not in answer, path)
    for path, status in (("/index.html", 404), ("/debug/pprof/", 200), ("/debug/pprof", 200)):
        t.equal("pages that %s lists" % path, re.findall(rb"^(/[a-z./]*) ", m.get(path, status), re.M),
                [b"/", b"/profile.json", b"/recording", b"/graph.json", b"/debug/pprof/heap", b"/debug/pprof/allocs", b"/metrics", b"/healthz"])
    for path in ("/?pid=%d" % (1 << 40), "/?pid=-1", "/?pid=", "/profile.json?pid=1x"):
        m.get(path, 400)
    m.is_unharmed()
    m.end()


@test("listen/metrics-of-one")
def _(t):
    """/metrics?pid=N is about one process, as the other paths are; without it about all."""
    m, pids = Forking(t, 3), []

    def are_served():  # a child is when it has stopped, which may be after its parent's next line
        pids[:] = m.pids()
        return len(pids) == 4
    t.wait_until("all", are_served)
    for pid in pids:
        t.equal("series", m.pids(m.get("/metrics?pid=" + pid)), [pid])
    t.equal("of none", m.get("/metrics?pid=1", 404), b"this process is not profiled\n")
    t.check(b"process_cpu_seconds_total" in m.get("/metrics?pid=" + pids[0]), "ptmem's own series")
    m.ptmem.stdin.close()
    t.equal("status", m.ptmem.wait(), 0)


@test("listen/quick-totals")
def _(t):
    """Totals need no rest between questions to ptmem, those about the history have one: by how long the server is ready to wait."""
    m, calls = Listening(t), os.path.join(t.directory, "calls")
    with subprocess.Popen([t.program("strace"), "-qq", "-e", "trace=poll", "-e", "signal=none", "-o", calls, "-p", str(m.server_pid)]) as tracer:
        t.wait_until("strace to trace", lambda: status_of(m.server_pid)["TracerPid"] == str(tracer.pid))

        def rests():
            """In ms, between the 1 ms of totals and the deadline for an answer of ptmem."""
            with open(calls, encoding="utf-8") as file:
                return [ms for ms in map(int, re.findall(r"\], 2, (-?\d+)\) +=", file.read())) if 2 < ms < 1000]
        m.get("/profile.json")
        for path in ("/healthz", "/metrics") * 10:
            m.get(path)
        t.equal("rests of totals", rests(), [])
        t.wait_until("a rest of the history", lambda: m.get("/profile.json") and rests())
        tracer.send_signal(signal.SIGINT)
    m.end()


@test("listen/targets")
def _(t):
    """Complete targets are accepted; what the library would not answer, or cut, is refused."""
    m = Listening(t)
    own = "%s:%d" % m.address()

    def ask(target, *headers):
        with m.connect() as s:
            s.sendall("\r\n".join(["GET %s HTTP/1.1" % target, *headers, "Connection: close", "", ""]).encode())
            return int(s.makefile("rb").read().split()[1])
    for target in ("http://%s/healthz" % own, "HTTP://LOCALHOST/healthz?pid=1", "http://localhost", "/healthz?a&b&c=d"):
        t.equal("status of " + target, ask(target, "Host: " + own), 200)
    for target in ("http://evil.example/healthz", "http://localhost@evil.example/healthz", "http://%s/" % ("x" * 300)):
        t.equal("status of " + target, ask(target, "Host: " + own), 421)
    t.equal("two hosts", ask("/healthz", "Host: localhost", "host: localhost"), 400)
    t.equal("two hosts", ask("/healthz", "Host: localhost", "Host: evil.example"), 400)
    for target in ("/metrics%00x", "/%00", "/?pid=%00", *("/metrics?" + "&".join([pair] * n) for pair in ("a", "a=b") for n in (17, 300, 2000))):
        t.equal("status of %.40s" % target, ask(target, "Host: localhost"), 400)
    t.equal("a long one", ask("/metrics?" + "a" * 40000, "Host: localhost"), 414)
    t.equal("many headers", ask("/metrics", "Host: localhost", *["a:b"] * 1000), 431)
    m.is_unharmed()
    m.end()


@test("listen/many-seconds")
def _(t):
    """Many requests with seconds= at a time: those beyond a limit are refused, and there is room for others; until their clients go."""
    m = Listening(t)
    waiting = []
    for _ in range(150):
        s = m.connect()
        s.sendall(b"GET /debug/pprof/heap?seconds=3600 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        waiting.append(s)

    def answered():
        return select.select(waiting, [], [], 0)[0]
    t.wait_until("86 answers", lambda: len(answered()) >= 86)
    t.equal("their status", {s.makefile("rb").readline().split()[1] for s in answered()}, {b"503"})
    m.is_unharmed()
    t.equal("allocated", m.metrics()["ptmem_heap_allocations_total"], 8)
    m.get("/debug/pprof/heap?seconds=1", 503)
    for s in waiting:
        s.close()
    m.get("/debug/pprof/heap?seconds=1")
    m.end()


@test("listen/sampled-calls")
def _(t):
    """All calls are counted, sampled or not: /metrics and --monitor say what the page does."""
    m = Listening(t, ["--heap-sample=64K"])
    for letter in b"xmxm":
        m.more(bytes([letter]))
    blocks, small = 7 + 4, 2 * 1024
    wanted = [blocks + small, 1000 * blocks + 8 * small]
    found, calls = m.metrics(), json.loads(m.get("/profile.json"))["calls"]
    t.equal("metrics", [found["ptmem_heap_" + k] for k in ("allocations_total", "allocated_bytes_total", "frees_total")], [*wanted, 0])
    t.equal("page", [sum(calls["calls"]), sum(calls["bytes"])], wanted)
    said = m.say("status").out.decode()
    t.check("allocations: %d\nreallocations: 0\nfrees: 0\n" % wanted[0] in said, said)
    t.check(" (live and peak are estimates, the peak the highest of them; calls are counted exactly)\n" in said, said)
    m.end()


@test("listen/names-utf8")
def _(t):
    """Whatever a program is called, texts of profiles are UTF-8: protobuf demands it, and readers refuse others."""
    m = Listening.__new__(Listening)
    m.t, m.cwd = t, t.subdirectory()
    path = os.fsencode(m.cwd) + b'/\xff\xfe"'
    shutil.copy(t.target("gcc-O2-pie", "monitored"), path)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    m.program = subprocess.Popen([path], cwd=m.cwd, env=t.environment(m.cwd), **pipes)
    m.expect(m.program, b"ready\n")
    m.ptmem = subprocess.Popen([t.ptmem(), "--listen", "--log-file=log", "-p", str(m.program.pid)], cwd=m.cwd,
                               env=t.environment(m.cwd), **pipes)
    t.wait_until("listening", lambda: m.url() is not None)
    t.wait_until("the program is served", lambda: b"ptmem_heap_live_bytes{" in m.get("/metrics"))
    m.more()
    served = Pprof(m.get("/debug/pprof/heap")).strings
    m.report()
    written = t.run([os.path.join(BUILD, "ptmem-report"), "--format=pprof", os.path.join(m.cwd, "fetched")]).out
    name = '\ufffd\ufffd"'
    for texts in (served, Pprof(written).strings):
        said = [text.decode("utf-8", "replace") for text in texts]
        t.equal("texts that are not UTF-8", [text for text, clean in zip(texts, said) if clean.encode() != text], [])
        t.check({"name: " + name, os.path.join(m.cwd, name)} <= set(said), said)
    m.ptmem.send_signal(signal.SIGTERM)
    t.equal("status of ptmem", m.ptmem.wait(), 0)
    m.program.stdin.close()
    t.equal("status of the program", m.program.wait(), 5)


@test("listen/slow-readers")
def _(t):
    """Clients that request much and read nothing: the program continues, others are served."""
    m = Listening(t)
    slow = []
    for _ in range(100):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.connect(m.address())
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 3)
        slow.append(s)
    for _ in range(3):
        m.is_unharmed()
    t.equal("JSON", values(m.get("/profile.json"))[:2], [10000, 10])
    for s in slow:
        s.close()
    m.is_unharmed()
    m.end()


@test("listen/connection-kept")
def _(t):
    """A connection is kept for the next request, also while nothing is asked for: it gets the end, at once."""
    m = Listening(t)
    connection = http.client.HTTPConnection(*m.address(), timeout=200)

    def get(path):
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        t.equal("status of " + path, answer.status, 200)
        return body
    get("/healthz")
    socket_ = connection.sock
    t.equal("state", json.loads(get("/profile.json"))["live"]["state"], "running")
    m.end()
    t.equal("state", json.loads(get("/profile.json"))["live"]["state"], "ended")
    t.check(socket_ and connection.sock is socket_, "it is another connection")
    connection.close()
    t.wait_until("the server ends", m.has_no_server)
