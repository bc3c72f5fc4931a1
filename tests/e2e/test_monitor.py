"""Monitor commands: answers and files, access, and that they do not delay the program."""

import json
import os
import re
import select
import signal
import socket
import stat
import subprocess

from harness import Fail, test
from live_lib import Monitored


for how in ("break", "auto", "jump"):
    @test("monitor/snapshots-" + how)
    def _(t, how=how):
        m = Monitored(t, ["--probes=" + how])
        other = t.subdirectory()
        t.equal("snapshot", m.say("snapshot").status, 0)
        t.equal("detailed_snapshot", m.say("detailed_snapshot", "d.out", pid=m.target_pid(), cwd=other).status, 0)
        m.more()
        t.equal("all_snapshots", m.say("all_snapshots", os.path.join(other, "a.out")).status, 0)
        one, tree, every = m.read("massif.vgdb.out"), m.read("d.out", other), m.read("a.out", other)
        t.equal("snapshots in it", [len(f.snapshots) for f in (one, tree)], [1, 1])
        for found, kind in ((one, "empty"), (tree, "detailed")):
            record = found.snapshots[0]
            t.equal("kind", record["kind"], kind)
            t.equal("bytes", [record[k] for k in ("mem_heap_B", "mem_heap_extra_B", "mem_stacks_B", "time")],
                    [7000, 7 * 16, 0, 7112])
        t.equal("paths", {p[-1]: n for p, n in tree.snapshots[0]["tree"].paths().items()}, {"hold": 7000})
        t.equal("profile so far", [s["mem_heap_B"] for s in every.snapshots], [1000 * i for i in range(9)])
        m.more()
        m.end()
        final = m.read("massif.out.%d" % m_pid(m))
        t.equal("the profile itself", [s["mem_heap_B"] for s in final.snapshots][:9], [1000 * i for i in range(9)])


def m_pid(m):
    return next(int(n.rsplit(".", 1)[1]) for n in os.listdir(m.cwd) if n.startswith("massif.out."))


@test("monitor/commands")
def _(t):
    m = Monitored(t)
    for word in ("sn", "detai", "a", "x", "snap", "stat", "status", "h"):
        t.equal(word, m.say(word).status, 0)
    for word, meant in (("s", b"snapshot or status"), ("d", b"detailed_snapshot or detach"),
                        ("det", b"detailed_snapshot or detach")):
        result = m.say(word)
        t.equal(word, result.status, 1)
        t.check(b"ambiguous command '%s': %s; help lists all\n" % (word.encode(), meant) in result.err, result.err)
    t.check(b"live bytes: 7000\n" in m.say("status").out, "status")
    t.check(b"detailed_snapshot" in m.say("help").out, "help")
    for words, text in ((("z",), b"unknown command 'z'"), (("snapshots",), b"unknown command"),
                        (("snapshot", "/nonexistent/x"), b"cannot write /nonexistent/x")):
        result = m.say(*words)
        t.equal(str(words), result.status, 1)
        t.check(text in result.err, "%r in %r" % (text, result.err))
    t.check(b"xtree memory report" in m.say("x", "x.%p.kcg").out, "xtmemory")
    with open(os.path.join(m.cwd, "x.%d.kcg" % m.target_pid()), encoding="utf-8") as file:
        t.check("totals: 7000 7\n" in file.read(), "totals of xtmemory")
    m.end()
    for words in ((), ("snapshot", "a", "b")):
        t.equal("usage %s" % (words,), m.say(*words).status, 1)
    t.equal("no ptmem there", m.say("status").status, 125)


@test("monitor/sigusr1")
def _(t):
    """Each signal writes a file of its own, beside the one that comes at the end."""
    m = Monitored(t, ["-o", "f.massif"])
    for number, count in ((1, 8), (2, 9)):
        m.ptmem.send_signal(signal.SIGUSR1)
        path = os.path.join(m.cwd, "f.%d.massif" % number)
        t.wait_until("all snapshots", lambda p=path: os.path.exists(p))
        t.equal("bytes", [s["mem_heap_B"] for s in m.read(path).snapshots], [1000 * i for i in range(count)])
        m.more()
    t.check("all snapshots written to %s\n" % path in m.end(), "no message")
    t.equal("files", sorted(n for n in os.listdir(m.cwd) if n.startswith(("f.", "massif"))),
            ["f.1.massif", "f.2.massif", "f.massif"])


@test("monitor/sigusr1-names")
def _(t):
    """For each source; a profile without a file gets one for the snapshots."""
    for out, trace, wanted in (("f.out", "heap,mmap", ["f.1.out", "f.mmap.1.out"]), (None, "heap", ["massif.out.%d.1"]),
                               ("/dev/null", "mmap", ["massif.out.%d.mmap.1"])):
        m = Monitored(t, ["--trace=" + trace, *(["-o", out] if out else [])])
        wanted = [n % m.target_pid() if "%" in n else n for n in wanted]
        m.ptmem.send_signal(signal.SIGUSR1)
        t.wait_until("all snapshots", lambda m=m, w=wanted: all(os.path.exists(os.path.join(m.cwd, n)) for n in w))
        m.end()
        t.equal("other names", [n for n in os.listdir(m.cwd) if "vgdb" in n], [])
        for name in wanted:
            m.read(name)


@test("monitor/sigusr1-leaks")
def _(t):
    """With --leaks SIGUSR1 asks for both, and the program continues."""
    m = Monitored(t, ["--leaks", "--older-than=0", "--leaks-out=leaks.json"])
    for number, live in ((1, 7000), (2, 8000)):
        m.ptmem.send_signal(signal.SIGUSR1)
        paths = [os.path.join(m.cwd, n) for n in ("massif.out.%d.%d" % (m.target_pid(), number), "leaks.json")]
        t.wait_until("both files", lambda p=paths: all(map(os.path.exists, p)))
        t.equal("bytes in the snapshots", m.read(paths[0]).snapshots[-1]["mem_heap_B"], live)
        with open(paths[1], encoding="utf-8") as file:
            t.equal("bytes in the report", json.load(file)["bytes"], live)
        os.unlink(paths[1])
        m.more()
    m.end()
    t.check(os.path.exists(os.path.join(m.cwd, "leaks.json")), "no report at the end")


for how in ("break", "auto", "jump"):
    @test("monitor/leaks-" + how)
    def _(t, how=how):
        m = Monitored(t, ["--leaks", "--older-than=0", "--probes=" + how])
        text = m.say("leaks").out.decode()
        t.check("leaks of process %d" % m.target_pid() in text and "hold" in text and "7,000" in text, text)
        m.more()
        other = t.subdirectory()
        t.equal("to a file", m.say("l", "l.json", pid=m.target_pid(), cwd=other).status, 0)
        with open(os.path.join(other, "l.json"), encoding="utf-8") as file:
            report = json.load(file)
        t.equal("the report", (report["bytes"], report["blocks"], report["pid"]), (8000, 8, m.target_pid()))
        t.check("kinds" not in report, "a leak check that was not requested")
        result = m.say("leaks", "/nonexistent/x")
        t.check(result.status == 1 and b"cannot write /nonexistent/x" in result.err, "error: %r" % result.err)
        m.end()


@test("monitor/leaks-checked")
def _(t):
    m = Monitored(t, ["--leak-check", "--older-than=0", "--error-exitcode=9", "--leaks-out=end.json"], attach=True)
    m.more()
    t.equal("leaks", m.say("leaks", "l.json").status, 0)
    with open(os.path.join(m.cwd, "l.json"), encoding="utf-8") as file:
        t.check("definitely lost" in json.load(file)["kinds"], "not checked")
    m.more()
    t.equal("detach", m.say("detach").status, 0)
    m.ptmem.wait(timeout=200)
    with open(os.path.join(m.cwd, "end.json"), encoding="utf-8") as file:
        lost = json.load(file)["kinds"]["definitely lost"]["bytes"]
    t.equal("the exit status is about the end alone", m.ptmem.returncode, 9 if lost else 0)
    m.program.stdin.close()
    m.program.wait()


@test("monitor/leaks-not-asked-for")
def _(t):
    m = Monitored(t)
    result = m.say("leaks")
    t.check(result.status == 1 and b"--leaks" in result.err, "%r" % result.err)
    m.end()


@test("monitor/detach")
def _(t):
    m = Monitored(t)
    t.equal("detach", m.say("detach").status, 0)
    t.wait_until("the profile", lambda: any(n.startswith("massif.out") for n in os.listdir(m.cwd)))
    with open("/proc/%d/status" % m.target_pid(), encoding="ascii") as file:
        t.check("TracerPid:\t0\n" in file.read(), "still traced")
    m.more()
    m.end()
    m = Monitored(t, attach=True)
    m.more()
    t.equal("detach", m.say("detach", pid=m.target_pid()).status, 0)
    t.equal("ptmem's status", m.ptmem.wait(timeout=200), 0)
    m.more()
    m.program.stdin.close()
    t.equal("the program's status", m.program.wait(timeout=200), 5)


@test("monitor/duration")
def _(t):
    """A request does not disturb the timer of --duration."""
    answers = 0
    while not answers:  # a machine so busy that the time was over before
        m = Monitored(t, ["--duration=5"], attach=True)
        while m.say("status").status == 0 and answers < 3:
            answers += 1
        t.equal("ptmem's status", m.ptmem.wait(timeout=200), 0)
        m.program.stdin.close()
        m.program.wait()


@test("monitor/many-requests")
def _(t):
    """Many requests at once, none is lost."""
    m = Monitored(t)
    argv = [t.ptmem(), "--monitor=%d" % m.ptmem.pid, "status"]
    asked = [subprocess.Popen(argv, cwd=m.cwd, env=m.env, stdout=subprocess.PIPE) for _ in range(40)]
    for process in asked:
        out, _ = process.communicate(timeout=200)
        t.check(b"live bytes: 7000" in out, "answer %r" % out)
    m.end()


@test("monitor/request-during-start")
def _(t):
    """A client that finds the socket gets an answer, however long ptmem takes to open it."""
    slow = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=listen", "-e", "inject=listen:delay_enter=300000"]
    m = Monitored(t, attach=True, before=slow)
    t.equal("status", m.say("status", pid=m.program.pid).status, 0)
    m.program.stdin.close()
    t.equal("ptmem's status", m.ptmem.wait(timeout=200), 0)


def connect(m):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(200)
    client.connect(os.path.join(m.cwd, "ptmem", "%d.sock" % m.ptmem.pid))
    return client


@test("monitor/slow-clients")
def _(t):
    """Clients that send nothing, or half a command, delay neither the program nor other clients."""
    m = Monitored(t)
    silent = [connect(m) for _ in range(70)]
    half = connect(m)
    half.sendall(b"0\0/\0stat")
    for _ in range(3):
        t.equal("status", m.say("status").status, 0)
    m.more()
    half.sendall(b"us\0")
    half.shutdown(socket.SHUT_WR)
    t.check(b"live bytes: 8000\n" in b"".join(iter(lambda: half.recv(4096), b"")), "no answer")
    m.end()
    t.equal("answers to silent clients", [client.recv(1) for client in silent[-9:]], [b""] * 9)


LEAKS = b"0\0/\0leaks\0"
SITES = 2 + 1024


def with_leaks(t):
    """A program whose leaks are more than any socket takes at once."""
    m = Monitored(t, ["--leaks", "--older-than=0", "--leaks-out=end"])
    m.more(b"m")
    return m


def read_answer(client):
    return b"".join(iter(lambda: client.recv(65536), b""))


def check_leaks(t, answer):
    t.check(answer.startswith(b"0leaks of process") and answer.endswith(b"\n\0"), "ends: %r" % answer[-50:])
    sites = re.search(rb": (\d+) sites\n", answer)
    t.equal("sites", int(sites[1]), SITES)
    t.equal("a stack of each", answer.count(b"main (monitored.c:"), SITES)


@test("monitor/slow-reader")
def _(t):
    """A large answer waits for its reader, and does not delay other clients."""
    m = with_leaks(t)
    client = connect(m)
    client.sendall(LEAKS)
    client.shutdown(socket.SHUT_WR)
    t.wait_until("a part of the answer", lambda: client.recv(1, socket.MSG_PEEK))
    for _ in range(3):
        m.more()
        t.equal("status", m.say("status").status, 0)
    check_leaks(t, read_answer(client))
    t.check(len(m.say("leaks").out) > 500000, "what the client prints")
    m.end()


@test("monitor/slow-reader-at-the-end")
def _(t):
    """A client that is reading when the program exits has a moment to finish."""
    m = with_leaks(t)
    client = connect(m)
    client.sendall(LEAKS)
    client.shutdown(socket.SHUT_WR)
    t.wait_until("a part of the answer", lambda: client.recv(1, socket.MSG_PEEK))
    m.ptmem.stdin.close()
    check_leaks(t, read_answer(client))
    m.end()


@test("monitor/cut-answer")
def _(t):
    """A client that does not read does not delay the exit, and learns that its answer is incomplete."""
    m = with_leaks(t)
    client = subprocess.Popen([t.ptmem(), "--monitor=%d" % m.ptmem.pid, "leaks"], env=m.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
    t.wait_until("a part of the answer", lambda: select.select([client.stdout], [], [], 0)[0])
    m.end()
    out, err = client.communicate()
    t.check(out.startswith(b"leaks of process"), "%r" % out[:50])
    t.equal("status and message", (client.returncode, err),
            (125, b"ptmem: the answer of process %d is incomplete\n" % m.ptmem.pid))


@test("monitor/no-descriptor-left")
def _(t):
    """A client that cannot be accepted at once is accepted later, without another one having to connect."""
    failing = ["strace", "-qq", "-o", "/dev/null", "-e", "trace=accept4", "-e", "inject=accept4:error=EMFILE:when=1..3"]
    m = Monitored(t, attach=True, before=failing)
    t.equal("status", m.say("status", pid=m.program.pid).status, 0)
    m.program.stdin.close()
    err = m.ptmem.stderr.read().decode()
    t.equal("ptmem's status", m.ptmem.wait(timeout=200), 0)
    t.equal("complaints", err.count("a client of --monitor must wait: Too many open files"), 1)


@test("monitor/errors")
def _(t):
    """Errors look like all others of ptmem, and have no second reason behind the first."""
    m = Monitored(t)
    for words, line in ((("z",), b"ptmem: unknown command 'z'; help lists all\n"),
                        (("snapshot", "/nonexistent/x"), b"ptmem: cannot write /nonexistent/x: No such file or directory\n")):
        result = m.say(*words)
        t.equal(str(words), (result.status, result.out, result.err), (1, b"", line))
    result = m.say("status", pid=os.getpid())
    t.equal("another process", (result.status, result.err),
            (125, b"ptmem: process %d is neither a ptmem nor traced by one\n" % os.getpid()))
    m.end()
    result = m.say("status")
    t.equal("none", (result.status, result.err), (125, b"ptmem: process %d: no such process\n" % m.ptmem.pid))


@test("monitor/own-outputs")
def own_outputs(t):
    """What ptmem writes itself, at its end or all the time, is no file for an answer, nor is the program."""
    m = Monitored(t, ["-o", "m.%p", "--events=events", "--folded=f.txt", "--log-file=log", "--leaks"])
    pid = m.target_pid()
    program = os.readlink("/proc/%d/exe" % pid)
    with open(program, "rb") as file:
        before = file.read()
    os.symlink("events", os.path.join(m.cwd, "link"))
    for name, use in (("m.%d" % pid, "-massif-out-file"), ("events", "--events"), ("link", "--events"), ("f.txt", "--folded"),
                      ("log", "--log-file"), (program, "the program")):
        for command in ("snapshot", "detailed_snapshot", "all_snapshots", "xtmemory", "leaks", "inspect"):
            said = m.say(command, name)
            t.equal("status of %s %s" % (command, name), said.status, 1)
            t.check(use.encode() in said.out + said.err, "%s %s: %r %r" % (command, name, said.out, said.err))
    t.equal("another file", m.say("snapshot", "m.other").status, 0)
    m.end()
    with open(program, "rb") as file:
        t.check(file.read() == before, "the program was overwritten")
    t.check(len(m.read("m.%d" % pid).snapshots) > 1, "the profile")


@test("monitor/long-request")
def _(t):
    """A command that is too long is refused, not executed in part."""
    m = Monitored(t)
    result = m.say("snapshot", "x" * 70000)
    t.equal("refused", (result.status, result.err), (1, b"ptmem: a request has less than 65536 bytes\n"))
    client = connect(m)
    client.sendall(b"0\0/\0snapshot " + b"x" * 65535)
    t.check(client.recv(1) == b"1", "no answer")
    t.equal("status", m.say("status").status, 0)
    m.end()


def status_for_nobody(t, m):
    return subprocess.run([t.for_others(t.ptmem()), "--monitor=%d" % m.ptmem.pid, "status"], cwd="/", env=m.env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, user=65534, group=65534,
                          extra_groups=[])


@test("monitor/permissions")
def _(t):
    m = Monitored(t)
    directory = os.path.join(m.cwd, "ptmem")
    t.equal("mode of the directory", stat.S_IMODE(os.stat(directory).st_mode), 0o700)
    t.equal("mode of the socket", stat.S_IMODE(os.stat(os.path.join(directory, os.listdir(directory)[0])).st_mode), 0o600)
    if os.geteuid() == 0:
        os.chmod(m.cwd, 0o777)
        os.chmod(directory, 0o777)  # even if somebody opened the way
        os.chmod(os.path.join(directory, os.listdir(directory)[0]), 0o777)
        done = status_for_nobody(t, m)
        t.equal("another user's status", (done.returncode, done.stdout), (125, b""))
        os.chmod(directory, 0o700)
        done = status_for_nobody(t, m)
        t.check(b"belongs to another user" in done.stderr, done.stderr.decode())
    m.end()
    t.equal("sockets left", os.listdir(directory), [])
    os.chmod(directory, 0o755)  # no longer private: not used, and the profile is made without
    if os.path.exists("/tmp/ptmem-%d" % os.geteuid()) and not os.path.isdir("/tmp/ptmem-%d" % os.geteuid()):
        raise Fail("a file where the second place for sockets is")
    env = {"XDG_RUNTIME_DIR": m.cwd}
    t.equal("profile without socket", t.run([t.ptmem(), "-q", "true"], cwd=m.cwd, env=env).status, 0)
    t.equal("sockets there", os.listdir(directory), [])


@test("monitor/left-sockets")
def left_sockets(t):
    """Sockets of ptmems that were killed go away at the next start; those of living ones and other files do not."""
    m = Monitored(t)
    directory = os.path.join(m.cwd, "ptmem")
    path = lambda name: os.path.join(directory, name)

    def bind(name):
        s = socket.socket(socket.AF_UNIX)
        s.bind(path(name))
        s.listen()
        return s

    for number in (2 ** 22 + 1, os.getpid(), 1):  # of a dead process, and of two that are something else
        bind("%d.sock" % number).close()
    bind("%d.new" % (2 ** 22 + 2)).close()
    os.utime(path("%d.new" % (2 ** 22 + 2)), (0, 0))
    bind("%d.new" % (2 ** 22 + 3)).close()  # perhaps not bound for good yet
    living = bind("%d.sock" % (2 ** 22 + 4))  # say, of another pid namespace
    bind("other.sock").close()
    with open(path("12345.sock"), "w", encoding="ascii"):
        pass
    kept = {"%d.sock" % m.ptmem.pid, "%d.new" % (2 ** 22 + 3), "%d.sock" % (2 ** 22 + 4), "other.sock", "12345.sock"}
    run = t.run([t.ptmem(), "--", "/bin/true"], cwd=m.cwd, env={"XDG_RUNTIME_DIR": m.cwd})
    t.equal("status", run.status, 0)
    t.equal("files that are left", set(os.listdir(directory)), kept)
    living.settimeout(0)
    try:
        living.accept()
        raise Fail("a living server was disturbed")
    except BlockingIOError:
        pass
    t.equal("status of a command", m.say("help").status, 0)
    living.close()
    m.end()
