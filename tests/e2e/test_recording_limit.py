"""--record-limit: no file of a recording is ever larger, each can be read at any time, and what it still has is exact."""

import json
import os
import re
import signal

from harness import BUILD, report, report_json, test
from recording_lib import Branches, LIMIT, OPTIONS, judge_moments, split_recordings


@test("recording-limit/exact")
def _(t):
    """All sums of the thinned recording are those of the whole one, which a replay of the events gives."""
    b = Branches(t, "--events=e")
    b.round()
    b.thinned()
    b.round()
    data = report_json(t, b.path)
    t.equal("while the program runs: incomplete", data["meta"]["incomplete"], True)
    judge_moments(t, data)
    b.end()
    t.equal("replay", t.run([t.ptmem(), "-q", "--replay=e", "--record=whole", "--massif-out-file=/dev/null"], cwd=b.cwd).status, 0)
    whole, thin = report_json(t, os.path.join(b.cwd, "whole")), report_json(t, b.path)
    t.check(os.path.getsize(os.path.join(b.cwd, "whole")) > LIMIT, "the whole recording is not too large")
    judge_moments(t, thin)
    t.equal("end", thin["end"], whole["end"])
    truth = t.truth(b.cwd)
    t.equal("truth", [thin["end"]["live_bytes"], thin["peak"]["bytes"]], [truth["live"], truth["peak"]])
    for key in ("bytes", "allocations", "temporary"):
        t.equal(key, sum(thin["leaves"][key]), sum(whole["leaves"][key]))
    for key in ("sizes", "lifetimes"):
        t.equal(key, sum(sum(h[1:]) for h in thin["leaves"][key]), sum(sum(h[1:]) for h in whole["leaves"][key]))
    t.check(len(thin["leaves"]["node"]) < len(whole["leaves"]["node"]), "no call path was merged")
    ratio = thin["timeline"]["interval"] // whole["timeline"]["interval"]
    every, n = whole["timeline"]["live_bytes"], len(thin["timeline"]["live_bytes"])
    t.equal("moments", thin["timeline"]["live_bytes"], [every[min((i + 1) * ratio, len(every)) - 1] for i in range(n)])
    text = t.run([os.path.join(BUILD, "ptmem-report"), b.path]).out.decode()
    t.check("thinned to 65536 bytes (--record-limit)" in text and "[other call paths]" in text, "ptmem-report prints: " + text[:1000])


@test("recording-limit/killed")
def _(t):
    """After SIGKILL of ptmem, in any state of the file, what is there can be read, and is consistent."""
    for rounds in range(3):
        b = Branches(t)
        for i in range(rounds):
            b.round()
            if i == 0 and rounds > 1:
                b.thinned()
        b.ptmem.send_signal(signal.SIGKILL)
        b.ptmem.wait()
        data = report_json(t, b.path)
        t.check(max(b.sizes()) <= LIMIT, "files of %s bytes" % b.sizes())
        t.equal("incomplete", data["meta"]["incomplete"], True)
        judge_moments(t, data)


@test("recording-limit/begun-anew")
def _(t):
    """A file that is appended to begins anew instead of becoming too large; with --listen, which reads it."""
    b = Branches(t, "--listen", levels=10)
    files, last = {b.inode()}, b.sizes()

    def has_grown():
        t.check(b.sizes()[0] <= LIMIT, "a file of %s bytes" % b.sizes())
        return b.sizes() != last

    while len(files) < 2:
        b.round()
        t.wait_until("the file to change", has_grown)
        files, last = files | {b.inode()}, b.sizes()
    data = b.fetch()
    judge_moments(t, data)
    b.ptmem.kill()
    b.ptmem.wait()
    left = report_json(t, b.path)
    judge_moments(t, left)
    t.equal("lost", left["meta"]["lost"], [])
    t.equal("call paths", len(left["leaves"]["node"]), len(data["leaves"]["node"]))
    t.equal("live in what is left", left["timeline"]["live_bytes"][-1], data["timeline"]["live_bytes"][-1])


@test("recording-limit/listen")
def _(t):
    """When the file is thinned, what is served is not."""
    b = Branches(t, "--listen")
    b.round()
    b.thinned()
    data = b.fetch()
    judge_moments(t, data)
    t.check(len(data["leaves"]["node"]) >= 16384 and not data["meta"]["lost"], "what is served is thinned")
    b.end()


@test("recording-limit/parts")
def _(t):
    """Each part has at most that size; what one leaves is there from the beginning of the next."""
    b = Branches(t, "--record-every=0.3s", "--record-keep=3")

    def names():
        return sorted(n for n in os.listdir(b.cwd) if n.endswith(".rec"))

    for number in range(1, 6):
        b.round()
        t.wait_until("another part", lambda: names()[-1] > "r.%03d.rec" % number)
        t.check(max(b.sizes()) <= LIMIT, "files of %s bytes" % b.sizes())
    b.end()
    found = [report_json(t, os.path.join(b.cwd, n)) for n in names()]
    last = found[-1]["meta"]["part"]
    t.equal("parts", [part["meta"]["part"] for part in found], [last - 2, last - 1, last])
    for part in found:
        judge_moments(t, part)
    for first, second in zip(found, found[1:]):
        c = second["cells"]
        t.equal("what was there", sum(n for born, n in zip(c["born"], c["bytes"]) if born == -1), first["end"]["live_bytes"])
    t.equal("truth", found[-1]["end"]["live_bytes"], t.truth(b.cwd)["live"])


@test("recording-limit/processes")
def _(t):
    """Forks have files of their own, each as small; a pipe has one at the end."""
    cwd, program = t.subdirectory(), t.target("gcc-O2-pie", "branches")
    script = "for i in 1 2; do printf xx | %s >/dev/null & done; wait" % program
    result = t.run([t.ptmem(), *OPTIONS, "--trace-children=yes", "--record=%p.rec", "--", "/bin/sh", "-c", script], cwd=cwd)
    t.equal("status (%s)" % result.err.decode(), result.status, 0)
    files = [os.path.join(cwd, n) for n in os.listdir(cwd) if n.endswith(".rec")]
    found = [data for data in (report_json(t, path) for path in files) if program in data["meta"]["command"].split()[0]]
    t.equal("programs", len(found), 2)
    t.check(max(os.path.getsize(path) for path in files) <= LIMIT, "a file is too large")
    truths = sorted(truth["live"] for _, truth in t.truths(cwd))
    t.equal("truth", sorted(data["end"]["live_bytes"] for data in found), truths)
    script = 'printf x | "$@" 3>&1 >/dev/null | cat >out'
    argv = [t.ptmem(), *OPTIONS, "--record=/dev/fd/3", "--", program]
    t.equal("status", t.run(["/bin/sh", "-c", script, "sh", *argv], cwd=cwd).status, 0)
    judge_moments(t, report_json(t, os.path.join(cwd, "out")))
    t.check(0 < os.path.getsize(os.path.join(cwd, "out")) <= LIMIT, "the output is too large")


def inherited(data):
    """Blocks that a forked child had at its fork, where its recording begins; nothing was released before."""
    return sum(n for born, n in zip(data["cells"]["born"], data["cells"]["blocks"]) if born == -1)


for trace in ("no", "yes"):
    @test("recording-limit/forks-" + trace)
    def _(t, trace=trace):
        """A fork that executes nothing has a file of its own while it runs, with what it had from its parent; both stay small."""
        b = Branches(t, "--trace-children=" + trace)
        b.round()
        b.thinned()
        b.round(b"f")

        def path_of_child():
            found = [n for n in os.listdir(b.cwd) if re.fullmatch(r"r\.\d+\.rec", n)]
            return found and os.path.join(b.cwd, found[0])

        t.wait_until("the file of the child", path_of_child)
        b.round()
        data = b.thinned(path_of_child())
        t.equal("while it runs: incomplete", data["meta"]["incomplete"], True)
        judge_moments(t, data)
        b.round(b"q")  # the child ends, and the parent goes on
        b.round()
        b.end()
        found = [report_json(t, path) for path in (path_of_child(), b.path)]
        t.equal("ends", [d["meta"]["exit"] for d in found], ["exited 0", "exited 0"])
        for data in found:
            judge_moments(t, data)
        t.equal("truth", [{"allocations": d["end"]["allocations"] + inherited(d), "frees": d["end"]["frees"],
                           "live": d["end"]["live_bytes"]} for d in found],
                [{k: truth[k] for k in ("allocations", "frees", "live")} for _, truth in t.truths(b.cwd)])


@test("recording-limit/standard-output")
def _(t):
    """--record=-: of each process one recording, after the other; none is too large, and each has all sums."""
    cwd = t.subdirectory()
    script = 'for input in x xfxqx; do printf $input | "$0" >/dev/null; done; exit 3'
    argv = ["/bin/sh", "-c", script, t.target("gcc-O2-pie", "branches")]
    run = t.run([t.ptmem(), "-q", *OPTIONS, "--record=-", "--trace-children=yes", "--", *argv], cwd=cwd)
    t.equal("status: " + run.err.decode(), run.status, 3)
    pieces = split_recordings(t, run.out)
    t.check(max(map(len, pieces)) <= LIMIT, "sizes: %s" % [len(p) for p in pieces])
    found = [json.loads(report(t, "--format=json", "-", stdin=piece)) for piece in pieces]
    t.equal("processes", len({data["meta"]["pid"] for data in found}), len(found))
    own = [data for data in found if argv[-1] in data["meta"]["command"].split()[0]]
    for data in own:
        judge_moments(t, data)
        t.check(data["meta"]["lost"], "nothing was left out")
    t.equal("truth", [(d["end"]["allocations"] + inherited(d), d["end"]["live_bytes"]) for d in own],
            [(truth["allocations"], truth["live"]) for _, truth in t.truths(cwd)])


@test("recording-limit/refused")
def _(t):
    for options, words in ((["--record-limit=1M"], "--record-limit needs --record"),
                           (["--record=r", "--record-limit=65535"], " from 65536 to 1125899906842624\n"),
                           (["--record=r", "--record-limit=10%"], "--record-limit")):
        result = t.run([t.ptmem(), *options, "--", "true"])
        t.equal("status", result.status, 1)
        t.check(words in result.err.decode(), "%s: %s" % (options, result.err.decode()))
