"""Where recordings come from and go to: attached programs, chains of programs, standard output, and files that are damaged
or cannot be read or written."""

import json
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import threading
import time
import zlib

from harness import report, report_json, test
from cli_lib import other_user
from recording_lib import Blocks, REPORT, judge, split_recordings
from report_lib import embedded


# A thread that answers each line by 50 blocks; it has its name before the first answer.
ANSWERING = """
import ctypes, sys, threading
kept = []
def run():
    ctypes.CDLL(None).prctl(15, b"worker-x")
    print("named", flush=True)
    for line in sys.stdin:
        kept.extend(bytearray(5000) for _ in range(50))
        print(len(kept), flush=True)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""


class Answering:
    def __init__(self, t):
        self.t, self.cwd = t, t.subdirectory()
        self.process = subprocess.Popen([t.program("python3"), "-c", ANSWERING], cwd=self.cwd, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, env=t.environment(self.cwd, PYTHONMALLOC="malloc"))
        t.equal("the first line", self.process.stdout.readline(), b"named\n")

    def ask(self, wanted):
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()
        self.t.equal("answer of the program", self.process.stdout.readline(), b"%d\n" % wanted)

    def end(self):
        self.process.stdin.close()
        self.t.equal("status of the program", self.process.wait(timeout=200), 0)
        self.process.stdout.close()


@test("recording/attached")
def _(t):
    """What an attached program allocates, exactly; threads that go on have their names, and ends are noted."""
    program, cwd = Answering(t), t.subdirectory()
    err = os.path.join(cwd, "err")
    with open(err, "wb") as file:
        ptmem = subprocess.Popen([t.ptmem(), "--record=r", "--events=e", "--massif-out-file=/dev/null", "-p", str(program.process.pid)],
                                 cwd=cwd, env=t.environment(cwd), stderr=file)

    def text():
        with open(err, encoding="utf-8", errors="replace") as file:
            return file.read()

    t.wait_until("ptmem to attach", lambda: "attached to process" in text() or ptmem.poll() is not None)
    program.ask(50)
    program.ask(100)
    ptmem.send_signal(signal.SIGINT)
    t.equal("status of ptmem: " + text(), ptmem.wait(timeout=200), 0)
    program.ask(150)
    program.end()
    path = os.path.join(cwd, "r")
    judge(t, path, Blocks(os.path.join(cwd, "e")))
    data = report_json(t, path)
    t.equal("attached", (data["meta"]["attached"], data["meta"]["exit"], data["meta"]["pid"]), (True, "detached", program.process.pid))
    t.equal("markers", [m["kind"] for m in data["markers"]], ["attach", "detach"])
    t.check(data["timeline"]["live_bytes"][-1] >= 500000, "the blocks of both answers are live")
    csv = report(t, "--format=csv", "--thread=worker-x", path).splitlines()
    t.check(sum(int(line.split(",")[0]) for line in csv[1:]) >= 500000, "by the thread of that name")


@test("recording/exec-chain")
def _(t):
    """Each program of a chain has its recording; what it executed ends the one before."""
    cwd = t.subdirectory()
    run = t.run([t.ptmem(), "-q", "--trace-children=yes", "--record=r", "--massif-out-file=/dev/null", "--", "/bin/sh", "-c",
                 "exec /bin/sh -c 'exec %s 3 2000'" % t.target("gcc-O2-pie", "mixed")], cwd=cwd)
    t.equal("status: " + run.err.decode(), run.status, 0)
    names = sorted(n for n in os.listdir(cwd) if re.fullmatch(r"r(\.\d+)?", n))
    found = [report_json(t, os.path.join(cwd, n)) for n in names]
    t.equal("processes", len({data["meta"]["pid"] for data in found}), 1)
    ends = {data["meta"]["command"].split()[0].rsplit("/", 1)[1]: data["meta"]["exit"] for data in found}
    t.equal("programs and their ends", (len(found), ends), (3, {"sh": "executed another program", "mixed": "exited 0"}))
    last = next(data for data in found if data["meta"]["exit"] == "exited 0")
    truth = t.truth(cwd)
    t.equal("the last program", (last["end"]["allocations"], last["end"]["live_bytes"]), (truth["allocations"], truth["live"]))


@test("recording/standard-output")
def _(t):
    """--record=- and a pipe carry the same recording; ptmem-report reads standard input and pipes."""
    cwd = t.subdirectory()
    run = t.run([t.ptmem(), "-q", "--record=-", "--massif-out-file=/dev/null", "--", "/bin/true"], cwd=cwd)
    t.equal("status: " + run.err.decode(), run.status, 0)
    data = json.loads(report(t, "--format=json", "-", stdin=run.out))
    t.equal("what standard input had", (data["meta"]["exit"], data["meta"]["incomplete"]), ("exited 0", False))
    pipe = os.path.join(cwd, "pipe")
    os.mkfifo(pipe)
    got = []

    def read():
        with open(pipe, "rb") as file:
            got.append(file.read())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    run = t.run([t.ptmem(), "-q", "--record=pipe", "--massif-out-file=/dev/null", "--", "/bin/true"], cwd=cwd)
    t.equal("status: " + run.err.decode(), run.status, 0)
    reader.join()
    t.check(got and not os.path.isfile(pipe), "the pipe is still one")

    def write():
        with open(pipe, "wb") as file:
            file.write(got[0])

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    t.equal("what the pipe had", report_json(t, pipe)["meta"]["exit"], "exited 0")
    writer.join()


@test("recording/standard-output/several")
def _(t):
    """Recordings of several processes in one place are not taken for one; each can be cut out of it."""
    run = t.run([t.ptmem(), "-q", "--record=-", "--massif-out-file=/dev/null", "--", "/bin/sh", "-c", "(exit 3); (exit 4); exit 5"])
    t.equal("status: " + run.err.decode(), run.status, 5)
    found = [json.loads(report(t, "--format=json", "-", stdin=piece)) for piece in split_recordings(t, run.out)]
    t.equal("ends", [data["meta"]["exit"] for data in found], ["exited 3", "exited 4", "exited 5"])
    t.equal("processes", len({data["meta"]["pid"] for data in found}), 3)


def small_recording(t):
    """Its directory, and the bytes of the file."""
    cwd = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "--", "/bin/true"], cwd=cwd)
    with open(os.path.join(cwd, "r"), "rb") as file:
        return cwd, file.read()


@test("recording/bad-inputs")
def _(t):
    """Files that are not recordings, or truncated ones: an error, or the complete part; nothing else."""
    cwd, whole = small_recording(t)
    path = os.path.join(cwd, "bad")
    sizes = [0, 1, 17, 18, 19, 33, 34, len(whole) // 2, len(whole) - 1]
    for content in [whole[:size] for size in sizes] + [whole[:100] + b"?" + whole[101:], b"\0" * 100]:
        with open(path, "wb") as file:
            file.write(content)
        result = t.run([REPORT, path])
        t.equal("status and output of %r" % content[:20], (result.status, result.out), (255, b""))
        t.check(result.err.decode().startswith("ptmem-report: " + path), "the message names it: " + result.err.decode())
    for name in (cwd, os.path.join(cwd, "missing")):
        t.check(b"cannot read " + name.encode() in t.run([REPORT, name]).err, "no file: " + name)
        report(t, name, status=2)


def chunks(data):
    """(offset, name, packed) of each chunk of a recording."""
    at = data.index(b"\n") + 1
    while at < len(data):
        end = at + 16 + struct.unpack_from("<I", data, at + 4)[0]
        yield at, data[at:at + 4], data[at + 16:end]
        at = end


def with_empty_syncs(data):
    """The same recording as older versions of ptmem wrote it."""
    nothing = zlib.compress(b"")
    old = data[:data.index(b"\n") + 1]
    for at, name, packed in chunks(data):
        if name == b"sync":
            old += name + struct.pack("<III", len(nothing), 0, zlib.crc32(nothing)) + nothing
        else:
            old += data[at:at + 16] + packed
    return old


@test("recording/bad-inputs/names-of-chunks")
def _(t):
    """A wrong bit in the name of any chunk is an error. Files of older versions, which do not cover the names by a checksum,
    are read as before; there it is an error if the table is one that each recording has."""
    cwd = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--free-stacks", "--massif-out-file=/dev/null", "--", t.target("gcc-O2-pie", "mixed"), "3",
           "500"], cwd=cwd)
    with open(os.path.join(cwd, "r"), "rb") as file:
        new = file.read()
    old = with_empty_syncs(new)
    path = os.path.join(cwd, "other")

    def judge_bits(data, is_wanted):
        for at, name, _ in chunks(data):
            for bit in (0, 9, 18, 27) if is_wanted(name) else ():
                with open(path, "wb") as file:
                    file.write(data[:at + bit // 8] + bytes([data[at + bit // 8] ^ 1 << bit % 8]) + data[at + bit // 8 + 1:])
                result = t.run([REPORT, path])
                t.equal("status and output for bit %d of %s" % (bit, name), (result.status, result.out), (255, b""))
                t.check(b"damaged" in result.err or b"missing" in result.err or b"leads nowhere" in result.err,
                        "message for bit %d of %s: %s" % (bit, name, result.err.decode()))

    t.check({b"meta", b"leaf", b"shar", b"cell", b"pkat", b"end.", b"sync"} <= {c[1] for c in chunks(new)}, "chunks of a recording")
    judge_bits(new, lambda name: True)
    with open(path, "wb") as file:
        file.write(old)
    t.equal("an older file", report_json(t, path), report_json(t, os.path.join(cwd, "r")))
    judge_bits(old, lambda name: name in (b"meta", b"time", b"cell", b"pkat", b"peak", b"leaf", b"sync"))


@test("recording/incomplete-end")
def _(t):
    """Without its totals a recording is incomplete, and they are an empty object of JSON."""
    cwd = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "--", "/bin/true"], cwd=cwd)
    path = os.path.join(cwd, "r")
    t.equal("members of the end", len(report_json(t, path)["end"]), 11)
    with open(path, "rb") as file:
        data = with_empty_syncs(file.read())
    at, _, packed = next(c for c in chunks(data) if c[1] == b"end.")
    with open(path, "wb") as file:
        file.write(data[:at] + data[at + 16 + len(packed):])
    found = report_json(t, path)
    t.equal("incomplete, and the end", (found["meta"]["incomplete"], found["end"]), (True, {}))


@test("recording/bad-inputs/not-complete-yet")
def _(t):
    """A file whose first part is still being written is not called damaged, and one of no bytes is called empty."""
    cwd, whole = small_recording(t)
    path = os.path.join(cwd, "begun")
    for size in (0, 18, 19, len(whole) // 2, len(whole) - 1):
        with open(path, "wb") as file:
            file.write(whole[:size])
        wanted = "the file is empty\n" if size == 0 else \
            "not complete yet: ptmem has not written the first part to its end, or the file was cut\n"
        result = t.run([REPORT, path])
        t.equal("%d bytes" % size, (result.status, result.err.decode()), (255, "ptmem-report: %s: %s" % (path, wanted)))


@test("recording/bad-times")
def _(t):
    """Errors of --at and --range list the words that are allowed, and those are."""
    cwd = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "--", "/bin/true"], cwd=cwd)
    path = os.path.join(cwd, "r")
    for option, words in (("--at=middle", "(2.5, 300ms, 40%, start, peak or end)"),
                          ("--range=start..peak", "(each 2.5, 300ms, 40%, start or end, the first no later than the second)")):
        result = t.run([REPORT, option, path])
        t.equal("status of " + option, result.status, 255)
        t.check(words in result.err.decode(), "message of %s: %s" % (option, result.err.decode()))
    for option in ("--at=start", "--at=peak", "--at=end", "--range=start..end"):
        report(t, option, path)


@test("recording/bad-inputs/not-permitted")
def _(t):
    """A recording that the user may not read, and a directory that ptmem may not write to."""
    user, cwd = other_user(), t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "--", "/bin/true"], cwd=cwd)
    os.chmod(os.path.join(cwd, "r"), 0o600)
    os.chmod(cwd, 0o755)

    def as_user(*argv):
        return subprocess.run([t.for_others(argv[0]), *argv[1:]], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, user=user.pw_uid, group=user.pw_gid, extra_groups=[])

    run = as_user(REPORT, "r")
    t.equal("reading", (run.returncode, run.stderr), (2, b"ptmem-report: cannot read r: Permission denied\n"))
    run = as_user(t.ptmem(), "-q", "--record=new", "--massif-out-file=/dev/null", "--", "/bin/echo", "ran")
    t.check(run.returncode != 0 and b"new" in run.stderr and b"ermission denied" in run.stderr, "writing: " + run.stderr.decode())


@test("recording/full-disk")
def _(t):
    """A full disk, or a directory that is gone, is an error of ptmem, whose recording and page are written elsewhere; and it
    is an error of each report, which leaves no part of a file."""
    for place, why in (("/dev/full", "No space left on device"), ("gone/f", "No such file or directory")):
        cwd, elsewhere = t.subdirectory(), t.subdirectory()
        os.mkdir(os.path.join(cwd, "gone"))
        run = t.run([t.ptmem(), "-q", "--record=" + place, "--html=" + place + "2" * place.startswith("gone"),
                     "--massif-out-file=/dev/null", "--", "/bin/mv", "gone", "away"], cwd=cwd, env={"TMPDIR": elsewhere})
        t.equal("status", run.status, 125)
        said = re.findall(r"cannot write \S+: %s; the (recording|page) is in (\S+)\n" % why, run.err.decode())
        t.equal("what is said: " + run.err.decode(), [what for what, _ in said], ["recording", "page"])
        recording, page = (path for _, path in said)
        t.equal("files", sorted(os.path.join(top, name) for top, _, names in os.walk(elsewhere) for name in names),
                sorted((recording, page)))
        data = report_json(t, recording)
        t.check(not data["meta"]["incomplete"] and data["end"]["allocations"] > 0, "the recording is complete")
        t.check(embedded(page) == data, "the page has the recording")
    cwd = t.subdirectory()
    t.run([t.ptmem(), "-q", "--record=r", "--massif-out-file=/dev/null", "--", t.target("gcc-O2-pie", "mixed"), "3", "500"],
          cwd=cwd)
    for form in ("text", "json", "csv", "pprof", "speedscope", "massif", "folded"):
        with open("/dev/full", "wb") as full:
            run = subprocess.run([REPORT, "--format=" + form, "r"], cwd=cwd, stdout=full, stderr=subprocess.PIPE, check=False)
        t.equal("status as %s: %s" % (form, run.stderr), run.returncode, 1)
        t.check(b"cannot write" in run.stderr, "message as " + form)
    for option in ("--html", "--flame", "--folded"):
        report(t, option + "=/dev/full", os.path.join(cwd, "r"), status=1)


class Limited:
    """ptmem records a program that waits for input; its own files may become @limit bytes long."""

    def __init__(self, t, limit, name="r"):
        self.t, self.cwd = t, t.subdirectory()
        self.path = os.path.join(self.cwd, name)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.process = subprocess.Popen(
            # breakpoints: ptmem changes its own limit where it makes memory for jumps
            [t.ptmem(), "-q", "--probes=break", "--record=" + name, "--massif-out-file=/dev/null", "--", "/bin/cat"],
            cwd=self.cwd, env=t.environment(self.cwd, TMPDIR=self.cwd), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, -1)))

    def set_limit(self, limit):
        resource.prlimit(self.process.pid, resource.RLIMIT_FSIZE, (limit, -1))

    def wait_for_part(self):
        self.t.wait_until("a part of the recording", lambda: self.t.run([REPORT, self.path]).status == 0)

    def wait_for_growth(self):
        size = os.path.getsize(self.path)
        self.t.wait_until("more of the recording", lambda: os.path.getsize(self.path) > size)

    def cut(self):
        """Lets the file end within a part: its size."""
        limit = 0

        def is_cut():
            nonlocal limit
            size = os.path.getsize(self.path)
            if size > limit:
                limit = size + 10
                self.set_limit(limit)
            return size == limit

        self.t.wait_until("the beginning of a part", is_cut)
        return limit

    def wait_for_line(self):
        return self.process.stderr.readline().decode()

    def kill(self):
        """ptmem is killed; what it said."""
        self.process.kill()
        return self.process.communicate()[1].decode()

    def end(self):
        """The program ends; what ptmem said."""
        said = self.process.communicate()[1].decode()
        self.t.equal("status", self.process.returncode, 125)
        self.t.check(re.search(r"cannot write \S*/r: File too large; the recording cannot be written elsewhere either\n", said),
                     "the message: " + said)
        return said


@test("recording/full-disk-for-a-while")
def _(t):
    """Data that does not fit while the program runs is written later: then the recording can be read."""
    run = Limited(t, 100)
    said = run.wait_for_line()
    t.check(re.search(r"^ptmem: warning: cannot write \S*/r: File too large; trying again every second\n$", said), said)
    t.equal("files", os.listdir(run.cwd), [])
    run.set_limit(-1)
    run.wait_for_part()
    size = run.cut()
    t.check(report_json(t, run.path)["meta"]["incomplete"], "the parts before")
    run.set_limit(-1)
    t.wait_until("the rest of it", lambda: os.path.getsize(run.path) > size)
    t.equal("what else is said", run.kill(), "")
    t.check(report_json(t, run.path)["meta"]["incomplete"], "a recording of a part")


@test("recording/full-disk-at-the-end")
def _(t):
    """The part that was written while the program ran remains if the whole does not fit anywhere."""
    start = time.monotonic()
    run = Limited(t, -1)
    run.wait_for_part()
    run.wait_for_growth()
    run.set_limit(0)
    said = run.end()
    seconds = re.search(r"^ptmem: warning: \S*/r has the first (\d+\.\d) s and can be read\n", said, re.M)
    t.check(seconds, "no word of it: " + said)
    t.check(0 < float(seconds[1]) <= time.monotonic() - start, "the part it has: " + said)
    t.check(report_json(t, run.path)["meta"]["incomplete"], "a recording of a part")
    t.equal("files", os.listdir(run.cwd), ["r"])


@test("recording/full-disk-all-the-time")
def _(t):
    """No unreadable part is left."""
    run = Limited(t, 100)
    run.wait_for_line()
    run.end()
    t.equal("files", os.listdir(run.cwd), [])


@test("recording/removed")
def _(t):
    """A file that is removed while the program runs is written again, as soon as its directory is there; that of others in
    its place is left alone until the end. One that is moved is extended where it is."""
    run = Limited(t, -1, "d/r")
    run.wait_for_part()
    away = t.subdirectory()
    os.rename(os.path.dirname(run.path), os.path.join(away, "d"))
    shutil.rmtree(away)
    t.check(run.wait_for_line().endswith("/d/r: No such file or directory; trying again every second\n"), "the message")
    os.mkdir(os.path.dirname(run.path))
    run.wait_for_part()
    os.rename(run.path, run.path + "2")
    size = os.path.getsize(run.path + "2")
    t.wait_until("the moved file grows", lambda: os.path.getsize(run.path + "2") > size)
    t.check(not os.path.exists(run.path), "one file")
    run.kill()
    t.check(report_json(t, run.path + "2")["meta"]["incomplete"], "a recording of a part")


@test("recording/replaced")
def _(t):
    """A file that others create in place of a removed one is left alone while the program runs."""
    run = Limited(t, -1)
    run.wait_for_part()
    with open(run.path + "2", "w", encoding="ascii") as file:
        file.write("theirs")
    os.rename(run.path + "2", run.path)
    t.check(run.wait_for_line().endswith("/r: File exists; trying again every second\n"), "the message")
    run.kill()
    with open(run.path, encoding="ascii") as file:
        t.equal("their file", file.read(), "theirs")
