"""Messages about usual mistakes say what was found, and what to type."""

import gzip
import os
import re
import shutil
import signal
import subprocess

from harness import BUILD, test
from process_lib import delays

REPORT = os.path.join(BUILD, "ptmem-report")


def said(t, argv, status, *patterns, cwd=None):
    """The only line of a command that fails with @status matches all @patterns."""
    run = t.run(argv, cwd=cwd)
    text = run.err.decode(errors="replace")
    t.equal("status of %s: %s" % (argv, text), run.status, status)
    for pattern in patterns:
        t.check(re.search(pattern, text), "%s: no %r in %r" % (argv, pattern, text))
    t.equal("lines of %s" % argv, text.count("\n"), 1)


def script(t, name, text):
    path = t.file(name, text)
    os.chmod(path, 0o755)
    return path


@test("messages/start")
def start(t):
    """A program beside the user, and files that need another one to run."""
    ptmem, here = t.ptmem(), t.subdirectory()
    shutil.copy("/bin/true", os.path.join(here, "orders-here"))
    said(t, [ptmem, "orders-here"], 127, r"orders-here: no such program in PATH: did you mean \./orders-here\?", cwd=here)
    said(t, [ptmem, "orders-there"], 127, "no such program in PATH$", cwd=here)
    said(t, [ptmem, script(t, "a", "#! /nowhere/sh -e\n")], 127, "first line names /nowhere/sh, which does not exist")
    said(t, [ptmem, script(t, "b", "#!/bin/sh\r\necho\r\n")], 127, "carriage return, so that /bin/sh is not found; sed")
    source = t.file("c.c", "int main(void) { return 0; }\n")
    said(t, [ptmem, source], 126, "not executable, and neither a program nor a script")
    said(t, [ptmem, t.file("d", "#!/bin/sh\n")], 126, r"not executable \(chmod \+x makes it so\)$")
    program = os.path.join(here, "c")
    t.equal("gcc", t.run(["gcc", "-o", program, source, "-Wl,--dynamic-linker=/nowhere/ld.so"]).status, 0)
    said(t, [ptmem, program], 127, "needs /nowhere/ld.so")


@test("messages/process-name")
def process_name(t):
    """-p NAME says which processes have the name, and what to type."""
    name, ptmem = "mess-%d" % (os.getpid() % 1000000), t.ptmem()
    program = os.path.join(t.subdirectory(), name)
    shutil.copy(t.program("sleep"), program)
    said(t, [ptmem, "-p", name], 1, "no process is called %s; --follow=%s" % (name, name))
    running = [subprocess.Popen([program, "100"])]
    t.wait_until("the name", lambda: open("/proc/%d/comm" % running[0].pid, encoding="ascii").read() == name + "\n")
    said(t, [ptmem, "-p", name], 1, r"that of %s is %d, ptmem -p %d$" % (name, running[0].pid, running[0].pid))
    running.append(subprocess.Popen([program, "100"]))
    t.wait_until("the name", lambda: open("/proc/%d/comm" % running[1].pid, encoding="ascii").read() == name + "\n")
    said(t, [ptmem, "-p", name], 1, "2 processes are called %s, ptmem -p %s; --follow=%s" %
         (name, ",".join(str(p.pid) for p in sorted(running, key=lambda p: p.pid)), name))
    for process in running:
        process.kill()
        process.wait()


@test("messages/ended-meanwhile")
def ended_meanwhile(t):
    """A process that ends when ptmem has seized it, which delays.so makes happen: what to use instead."""
    for option, instead in (("--graph", "--graph"), ("--inspect", "--inspect-at-exit")):
        running = subprocess.Popen(["sleep", "100"])
        run = t.run([t.ptmem(), option, "-p", str(running.pid)], env=delays(signal=int(signal.SIGKILL)))
        t.equal("status", run.status, 125)
        t.equal("message", run.err.decode(), "ptmem: process %d ended before its memory could be read; ptmem %s -- PROGRAM shows it at "
                "the end of a program that ptmem starts\n" % (running.pid, instead))
        running.wait()


@test("messages/values")
def values(t):
    """Values after a space: of --html if that is clear, else what to type."""
    ptmem, here = t.ptmem(), t.subdirectory()
    run = t.run([ptmem, "--html", "report.html", "/bin/true"], cwd=here)
    t.equal("status: %r" % run.err, (run.status, os.path.exists(os.path.join(here, "report.html"))), (0, True))
    said(t, [ptmem, "--html", "/bin/true"], 1, "a value is missing, --html=FILE")
    said(t, [ptmem, "--html", script(t, "run.html", "#!/bin/sh\n")], 1, "a value is missing, --html=FILE")
    said(t, [ptmem, "--record", "r", "/bin/true"], 1, "follows an equals sign, --record=r$")
    run = t.run([ptmem, "--top=50", "/bin/true"], cwd=here)
    t.check(b"hint: --top prints a table every 50 s here; with -p PID in a terminal" in run.err, "top: %r" % run.err)


@test("messages/places")
def places(t):
    here = t.subdirectory()
    said(t, [t.ptmem(), "-o", here + "/none/m", "/bin/true"], 125, "there is no directory %s/none .mkdir -p" % here)
    said(t, [t.ptmem(), "--html=/proc/1/x.html", "/bin/true"], 125, "cannot write /proc/1/x.html: ")
    said(t, [t.ptmem(), "--html=/proc/x.html", "/bin/true"], 125, "(Permission denied|files cannot be made in /proc); --html=FILE names another place")
    for place, why in ("none/o.md", "there is no directory %s/none .mkdir -p" % here), (".", "Is a directory"):
        said(t, [t.ptmem(), "--limit=peak<1G", "--limits-out=%s/o.md" % here, "--limits-out=%s/%s" % (here, place), "/bin/true"], 125, why)
    said(t, [t.ptmem(), "--limits-file=" + t.file("long", "x" * 5000), "/bin/true"], 125, r"long:1: x{200}\.\.\.: a limit is")
    # what would change the order of a line's characters
    said(t, [t.ptmem(), "--limit=left\u202eright<1", "/bin/true"], 1, r"--limit=left\\xe2\\x80\\xaeright<1: a limit is")
    if os.geteuid() != 0:
        os.chmod(here, 0o555)
        said(t, [t.ptmem(), "/bin/true"], 125, r"Permission denied; --massif-out-file=FILE names another place", cwd=here)


@test("messages/foreign-files")
def foreign_files(t):
    """ptmem-report says what a file is that it does not read."""
    here = t.subdirectory()
    run = t.profile([t.target("gcc-O2-pie", "mixed"), "1", "10"],
                    ["-o", "m", "--record=r", "--events=ev", "--folded=f", "--flame=s", "--html=h", "--xtree-memory=full",
                     "--xtree-memory-file=x"], cwd=here)
    t.equal("status", run.status, 0)
    pprof = t.run([REPORT, "--format=pprof", "r"], cwd=here).out
    files = {"p.pb.gz": "for pprof: go tool pprof", "m.gz": "compressed: unpack it by gunzip", "m.xz": "by unxz", "ev": "--replay=FILE",
             "f": "folded stacks", "s": "picture", "h": "a page", "x": "kcachegrind", "j": "JSON", "README": "a text",
             "b": "--baseline=FILE", "/bin/true": "a program", "later": "of another version of ptmem"}
    with open(os.path.join(here, "m"), "rb") as file:
        data = file.read()
    for name, content in (("m.gz", gzip.compress(data)), ("m.xz", b"\xfd7zXZ\0"), ("j", b"{}\n"), ("README", b"# Title\n\nText\n"),
                          ("later", b"ptmem-recording 9\n\0\0\0"), ("p.pb.gz", pprof), ("p.pb", gzip.decompress(pprof))):
        with open(os.path.join(here, name), "wb") as file:
            file.write(content)
    t.equal("status", t.run([REPORT, "--write-baseline=b", "r"], cwd=here).status, 0)
    for name, what in {**files, "p.pb": "for pprof"}.items():
        said(t, [REPORT, name], 255, "not a massif profile nor a recording of ptmem --record: .*" + what, cwd=here)
    for pair in (["m", "r"], ["r", "m"]):
        said(t, [REPORT, "--diff", *pair], 255, "r is a recording, and m a massif file: .* --format=massif r >FILE", cwd=here)
    said(t, [REPORT, "--range=0", "r"], 255, r"--range=0\.\.end is from then on, and --at=0", cwd=here)
    said(t, [REPORT, "--range=1..0", "r"], 255, "the first no later than the second", cwd=here)
