"""--top on a terminal: contents, keys, window sizes, and that the terminal is restored at the end."""

import os
import re
import signal

import massif
from harness import test
from terminal import Terminal
from leaks_lib import Waiting
from process_lib import Server, wait_state

KEYS = "l live  g growth  s start  r rate  a caller  enter path  z zero  w write  q quit"

UP, DOWN = b"\x1bOA", b"\x1bOB"


class Top:
    """ptmem --top on a terminal, attached to @programs, which then run their @steps: allocate blocks."""

    def __init__(self, t, programs, interval=0.2, steps=(b"begun\n", b"placed\n"), options=(), **how):
        self.t, self.cwd = t, t.subdirectory()
        environment = t.environment(self.cwd)
        environment.pop("TERM", None)
        pids = ",".join(str(p.process.pid) for p in programs)
        self.terminal = Terminal([t.ptmem(), "--top=%g" % interval, "-o", "out.%p", *options, "-p", pids], environment, self.cwd, **how)
        self.wait("ptmem to attach", lambda: self.terminal.text().count("attached to process") == len(programs))
        for p in programs:
            for step in steps:
                p.step(step)

    def wait(self, what, condition):
        """@condition sees one screen, self.lines: two reads could see parts of two frames."""

        def holds():
            self.lines = self.terminal.screen()
            return condition()

        try:
            self.t.wait_until(what, holds)
        except Exception:
            with open(os.path.join(self.cwd, "screen"), "w", encoding="utf-8") as file:
                file.write("\n".join(self.terminal.screen()) + "\n\n" + repr(self.terminal.raw))
            raise

    def shows(self, pattern):
        self.wait("the screen to show " + pattern, lambda: re.search(pattern, "\n".join(self.lines), re.M))

    def tables(self):
        """Screen lines on which tables begin."""
        return [i for i, line in enumerate(self.lines) if line.startswith("process ")]

    def paths(self):
        """Screen lines on which shown paths begin."""
        return [i for i, line in enumerate(self.lines) if line.lstrip().startswith("by ")]

    def press(self, keys, pattern):
        self.terminal.type(keys)
        self.shows(pattern)

    def end(self, **how):
        t = self.t
        t.equal("status of ptmem", self.terminal.wait(**how), 0)
        t.check(self.terminal.is_as_before(), "the terminal's modes are not as they were")
        t.check("written to" in self.terminal.text(), "no report: " + self.terminal.text()[-500:])


def finish(t, program):
    program.step(b"done\n")
    t.equal("the program's exit status", program.process.wait(), 0)


@test("top/keys")
def keys(t):
    program = Waiting(t)
    top = Top(t, [program], columns=120)
    top.shows(r"by live bytes$")
    row = r"^ +432 B +\S+ B +\+432 B +\S+ \S+/s +9  follow_list \(leaks\.c:\d+\)$"
    top.wait("a row, and the line of keys, which is drawn last",
             lambda: KEYS in top.lines and re.search(row, "\n".join(top.lines), re.M))
    lines = top.lines
    units = {"B": 1, "KiB": 1024}
    live = [float(m[1]) * units[m[2]] for m in (re.match(r" +([0-9.]+) (B|KiB) .*\(", line) for line in lines) if m]
    t.check(len(live) > 10 and live == sorted(live, reverse=True), "not the largest first: %s" % lines)
    top.press(b"r", "by rate$")
    top.press(b"g", "by growth$")
    top.press(b"s", "by growth since the start")
    top.press(b"l", "by live bytes$")
    top.press(b"\n", r"^ +by \S+ \(")
    top.wait("the path below the first row", lambda: top.paths()[:1] == [4])
    top.terminal.type(DOWN)
    top.wait("the path below the second row", lambda: top.paths()[:1] == [5])
    top.press(b"\n", re.escape(KEYS))
    top.press(b"z", r"^ +432 B +0 B +0 B .* follow_list")
    top.press(b"a", "by live bytes, callers of wrappers$")
    top.press(b"a", "by live bytes$")
    top.press(b"w", r"^written to .*out\.%d\.1$" % program.process.pid)
    written = massif.Massif(os.path.join(top.cwd, "out.%d.1" % program.process.pid))
    t.check(written.snapshots, "nothing was written")
    top.press(b"l", re.escape(KEYS))
    top.terminal.type(b"q")
    top.end()
    t.check(re.search(r"ptmem: process %d: written to \S+/out\.%d\.1\b" % ((program.process.pid,) * 2),
                      top.terminal.text()), "what `w` wrote is not reported when the screen is gone")
    finish(t, program)


@test("top/sizes")
def sizes(t):
    """A tiny terminal, a wide one and one that is resized; the selected row is always visible."""
    program = Waiting(t)
    top = Top(t, [program], rows=5, columns=20)
    top.shows(r"^live [0-9.]+ KiB in \d+")
    t.check(all(len(line) <= 20 for line in top.lines), "wider than the screen")
    for _ in range(40):
        top.terminal.type(DOWN)
    last = lambda: top.lines[3]
    top.wait("the smallest site", lambda: re.match(r" +\d\d? B ", last()))
    top.terminal.resize(20, 60)
    os.kill(top.terminal.process.pid, signal.SIGWINCH)
    top.shows(r"^lgsr order  a caller  enter path  z zero  w write  q quit$")
    top.terminal.resize(60, 200)
    os.kill(top.terminal.process.pid, signal.SIGWINCH)
    title = " ".join(program.command)
    top.shows(r"process \d+, %s" % re.escape(title if len(title) <= 100 else title[:99]))
    top.shows(r"follow_list \(leaks\.c:\d+\)$")
    top.terminal.type(b"q")
    top.end()
    finish(t, program)


def leave(name, how):
    @test("top/terminal-after-" + name)
    def _(t):
        program = Waiting(t)
        top = Top(t, [program], term="xterm")
        top.wait("a table", lambda: "(leaks.c:" in top.terminal.text())
        number = how(top, program)
        top.end(signal_number=number)
        rest = re.sub(rb"(?s)\x1b\[\?1049h.*?\x1b\[\?1049l", b"", top.terminal.raw)
        t.check(rest != top.terminal.raw and b"\x1b[?1049h" not in rest, "the screen is not left")
        t.check(b"written to" in rest, "the report is not on the screen that stays: %r" % rest)
        t.check(b"\x1b[?25h" in top.terminal.raw[top.terminal.raw.rfind(b"\x1b[?25l"):], "the cursor stays hidden")
        if program.process.poll() is None:
            finish(t, program)


def kill(_top, program):
    program.process.kill()
    program.process.wait()


leave("interrupt", lambda top, program: top.terminal.type(b"\x03") and None)
leave("sigterm", lambda top, program: signal.SIGTERM)
leave("death", kill)


@test("top/suspended")
def suspended(t):
    """Control-Z returns the terminal to the shell while the program runs; fg shows the table again."""
    program, cwd = Waiting(t), t.subdirectory()
    environment = dict(t.environment(cwd), PS1="$ ", HISTFILE="/dev/null")
    environment.pop("TERM", None)
    terminal = Terminal(["bash", "--norc", "-i"], environment, cwd, term="xterm")
    terminal.type(b"%s --top=0.2 -o out -p %d\n" % (t.ptmem().encode(), program.process.pid))
    t.wait_until("ptmem to attach", lambda: "attached to process" in terminal.text())
    program.step(b"begun\n")
    program.step(b"placed\n")

    def type_and_wait(keys, what):
        terminal.read()
        before = len(terminal.raw)
        terminal.type(keys)
        t.wait_until(what, lambda: what in (terminal.read() or terminal.raw[before:].decode(errors="replace")))
        return terminal.raw[before:]

    t.wait_until("a table", lambda: "(leaks.c:" in terminal.text())
    stopped = type_and_wait(b"\x1a", "Stopped")
    t.check(b"\x1b[?1049l" in stopped.split(b"Stopped")[0], "the screen is not the shell's: %r" % stopped)
    wait_state(t, program.process.pid, "RS")
    again = type_and_wait(b"fg\n", "(leaks.c:")
    t.check(b"\x1b[?1049h" in again, "no screen of its own: %r" % again)
    type_and_wait(b"q", "written to")
    terminal.type(b"exit 5\n")
    t.equal("status of the shell", terminal.wait(), 5)
    finish(t, program)


@test("top/no-screen")
def no_screen(t):
    """On a terminal without cursor control: one table per interval, without colour."""
    for term in (None, "dumb", "no-such-terminal"):
        program = Waiting(t)
        top = Top(t, [program], term=term)
        row = re.compile(r"^ptmem: +432 B .* follow_list \(leaks\.c:\d+\)$", re.M)
        top.wait("three tables with TERM=%s" % term, lambda: len(row.findall(top.terminal.text())) >= 3)
        top.end(signal_number=signal.SIGTERM)
        t.check(b"\x1b" not in top.terminal.raw, "escapes with TERM=%s: %r" % (term, top.terminal.raw[:200]))
        finish(t, program)


@test("top/several")
def several(t):
    """Each process has its share of the screen; the report of one that ends remains visible."""
    programs = [Waiting(t), Waiting(t)]
    top = Top(t, programs, rows=24, columns=150)
    pids = [p.process.pid for p in programs]
    top.wait("both tables", lambda: sum(bool(re.match(r"process (%d|%d), " % tuple(pids), line))
                                        for line in top.lines) == 2)
    top.wait("the tables to begin there", lambda: top.tables() == [0, 11])
    programs[0].process.kill()
    programs[0].process.wait()
    top.wait("one table", lambda: len(top.tables()) == 1)
    top.terminal.type(b"q")
    top.end()
    text = top.terminal.text()
    t.check(re.search(r"ptmem: +written to +2 files, \S+/out\.(%d|%d) the first" % tuple(pids), text), "nothing was written: " + text)
    for pid in pids:
        t.check(massif.Massif(os.path.join(top.cwd, "out.%d" % pid)).snapshots, "no snapshots of %d" % pid)
    finish(t, programs[1])


def labels(lines):
    """Call sites of the rows that are shown."""
    return [line.split("  ")[-1] for line in lines if re.match(r" +[0-9.]+ ([KMG]i)?B .*/s +\d+  ", line)]


@test("top/labels")
def labels_differ(t):
    """All rows differ, and paths end with main."""
    program = Waiting(t)
    top = Top(t, [program], rows=100, columns=200)
    top.shows(r"follow_list \(leaks\.c:\d+\)")
    top.wait("rows of different labels", lambda: len(labels(top.lines)) > 10 and
             len(set(labels(top.lines))) == len(labels(top.lines)))
    top.press(b"\n", r"^ +by main \(leaks\.c:\d+\)$")
    screen = top.lines
    t.check(not any("below main" in line or "__libc_start" in line or "_start" in line for line in screen),
            "start-up code in a path:\n" + "\n".join(screen))
    top.terminal.type(b"q")
    top.end()
    finish(t, program)


@test("top/selection")
def selection(t):
    """One row of all tables is selected, even after a process has ended; its path stays within its table's share."""
    programs = [Waiting(t), Waiting(t)]
    top = Top(t, programs, rows=10, columns=150, options=["--show-below-main=yes"])
    top.wait("both tables", lambda: top.tables() == [0, 4])
    top.wait("both programs to have placed their blocks",
             lambda: len(re.findall(r"^ .*\breach_main_stack \(", "\n".join(top.lines), re.M)) == 2)
    top.press(b"\nw", r"^written to ")  # below the tables
    top.wait("the tables to be where they were", lambda: top.tables() == [0, 4])
    top.terminal.resize(80, 150)
    os.kill(top.terminal.process.pid, signal.SIGWINCH)
    top.wait("all of the path below the first row",
             lambda: len(top.tables()) == 2 and top.paths()[:1] == [4] and "by _start " in top.lines[top.paths()[-1]])
    path = len(top.paths())
    t.check(path > 1, "a path of one line may not reach the end of a share")
    count = top.tables()[1] - 3 - path
    top.terminal.type(DOWN * (2 * count - 1))
    top.wait("the path at the end of the second table",
             lambda: top.tables() == [0, 3 + count] and top.paths()[:1] == [2 * (3 + count)])
    programs[0].process.kill()
    programs[0].process.wait()
    top.wait("the path at the end of the table that is left", lambda: top.tables() == [0] and top.paths()[:1] == [3 + count])
    top.terminal.type(UP)
    top.wait("the path one row up", lambda: top.paths()[:1] == [2 + count])
    top.terminal.type(b"q")
    top.end()
    finish(t, programs[1])


@test("top/moving-row")
def moving_row(t):
    """A path that is shown moves with its site in the order."""
    server = Server(t, threads=1)
    top = Top(t, [server], rows=24, columns=120, steps=())

    def row(blocks):
        """The line of the leak, whose blocks are of 1000 bytes."""
        size = "%.1f KiB" % (blocks * 1000 / 1024) if blocks > 1 else "1000 B"
        found = [i for i, line in enumerate(top.lines) if re.match(r" +%s .* %d  t_malloc" % (re.escape(size), blocks), line)]
        return found[0] if len(found) == 1 else None

    top.shows(r"[KM]iB/s .*  t_malloc \(truth\.h:\d+\)$")
    server.say("l")
    server.say("p")  # the order must not change before the keys are read
    top.wait("the leak, and no more calls", lambda: row(1) and set(re.findall(r"\S+ \S*B/s", "\n".join(top.lines))) == {"0 B/s"})
    before = row(1)
    t.check(before > 3, "the smaller site comes first")
    top.terminal.type(DOWN * (before - 3) + b"\n")
    top.wait("its path", lambda: row(1) and top.paths()[:1] == [row(1) + 1])
    server.say("c")
    for _ in range(50):
        server.send("l")
    top.wait("both to be first", lambda: row(51) == 3 and top.paths()[:1] == [4])
    top.terminal.type(b"q")
    top.end()
    server.end()
