"""Job control: an interactive shell on a terminal of its own starts a program, with and without ptmem. Both must look alike:
what is on the terminal, what the shell reports about its jobs, and statuses."""

import difflib
import os
import re
import signal
import subprocess
import time

import harness
from harness import test
from terminal import Terminal
from process_lib import state

PROMPT = "ready> "
JOB = "$RUN ./stopself"


class Shell:
    """bash on a terminal; what is typed next waits for what is expected now."""

    def __init__(self, t, run):
        self.t, self.cwd, self.at = t, t.subdirectory(), 0
        os.symlink(t.target("gcc-O2-pie", "stopself"), os.path.join(self.cwd, "stopself"))
        environment = dict(t.environment(self.cwd), PS1=PROMPT, HISTFILE="/dev/null", RUN=run, INPUTRC="/dev/null")
        self.terminal = Terminal(["bash", "--norc", "-i"], environment, self.cwd, term="dumb", columns=200)
        self.expect(PROMPT)

    def path(self, name):
        return os.path.join(self.cwd, name)

    def expect(self, what):
        """Waits for @what behind all that was expected before."""
        def is_there():
            return what in self.terminal.text()[self.at:]
        try:
            self.t.wait_until("%r" % what, is_there)
        except harness.Fail as reason:
            raise harness.Fail("%s, after %r" % (reason, self.terminal.text()[-600:])) from None
        self.at = self.terminal.text().index(what, self.at) + len(what)

    def type(self, keys, *expected):
        self.terminal.type(keys.encode())
        for what in expected:
            self.expect(what)

    def command(self, line, *expected):
        """Of the shell, which is at its prompt, and comes back to that."""
        self.type(line + "\n", line + "\n", *expected, PROMPT)

    def leader(self):
        """The shell's child: the program, or ptmem. 0 = none."""
        shell = self.terminal.process.pid
        with open("/proc/%d/task/%d/children" % (shell, shell), encoding="ascii") as file:
            pids = file.read().split()
        return int(pids[0]) if pids else 0

    def let_go(self):
        with open(self.path("go"), "w", encoding="ascii"):
            pass

    def await_stop(self, continued=1):
        """Its only job continues in the background, and stops when it reads."""
        self.t.wait_until("the job to go on", lambda: os.path.exists(self.path("continued")))
        self.t.equal("signals SIGCONT", self.number("continued"), continued)
        os.unlink(self.path("continued"))
        self.let_go()
        self.t.wait_until("the job to stop", lambda: state(self.leader()) == "T")
        os.unlink(self.path("go"))
        self.command("jobs", "Stopped")

    def number(self, name):
        try:
            with open(self.path(name), encoding="ascii") as file:
                return int(file.read())
        except (FileNotFoundError, ValueError):
            return 0

    def pid(self):
        self.t.wait_until("the program's pid", lambda: self.number("pid") > 0)
        return self.number("pid")

    def finish(self, line="go on"):
        """The program is in the foreground, and reads a line."""
        if os.path.exists(self.path("continued")):
            os.unlink(self.path("continued"))
        self.type(line + "\n", "read " + line, PROMPT)
        os.unlink(self.path("pid"))
        self.command("echo status $?", "status 3")

    def leave(self):
        self.terminal.type(b"exit 5\n")
        self.t.equal("status of the shell", self.terminal.wait(), 5)
        text = re.sub(r"^\[1\] \d+$", "[1] PID", self.terminal.text(), flags=re.M)
        return re.sub(r"^(\[1\][+-]) +\d+ ", r"\1 PID ", text, flags=re.M)


def foreground(name):
    """It stops itself, fg continues it."""
    def scene(shell):
        for mode in ("self", "group", "threads"):
            shell.command("%s %s %s" % (JOB, mode, name), "Stopped")
            shell.command("echo status $?", "status %d" % (128 + getattr(signal, "SIG" + name)))
            shell.type("fg\n", "continued 1")
            shell.finish()
    return scene


def background(shell):
    """It stops itself, continues in the background, and is stopped there when it reads."""
    shell.command(JOB + " self TSTP", "Stopped")
    shell.command("bg")
    shell.await_stop()
    shell.type("fg\n", JOB)
    shell.finish()
    shell.command(JOB + " read &")
    shell.await_stop(0)
    shell.type("fg\n", JOB)
    shell.finish()


def by_kill(shell):
    """SIGCONT is sent to the job's group, to its leader, and to the program alone."""
    for line in ("kill -CONT %1", "kill -CONT $(jobs -p)", None):
        shell.command(JOB + " self STOP", "Stopped")
        if line:
            shell.command(line)
        else:
            os.kill(shell.pid(), signal.SIGCONT)
        shell.await_stop()
        shell.type("fg\n", JOB)
        shell.finish()


def by_keys(shell):
    """Control-Z: of a program that does nothing about it, of one that catches it, and of one that ignores it."""
    for mode in ("work", "handler"):
        shell.type("%s %s\n" % (JOB, mode), "working\n")
        shell.type("\x1a", *(["handler\n"] if mode == "handler" else []), "Stopped", PROMPT)
        shell.command("echo status $?", "status 148")
        shell.type("fg\n", "continued 1")
        shell.finish()
    shell.type(JOB + " ignore\n", "continued 0")
    shell.type("\x1a", "^Z")
    shell.finish()


def in_pipeline(shell):
    shell.command(JOB + " group TSTP | cat", "Stopped")
    shell.command("echo status $?", "status 148")
    shell.type("fg\n", "continued 1")
    shell.type("go on\n", "read go on", PROMPT)
    shell.command("echo status $?", "status 0")


def in_shell(shell):
    """A shell below the shell that suspends itself."""
    shell.type("$RUN bash --norc -i\n", "bash --norc -i\n", PROMPT)
    shell.type("suspend\n", "Stopped", PROMPT)
    shell.type("fg\n", "bash --norc -i\n", PROMPT)
    shell.command("echo inside", "inside")
    shell.type("exit 4\n", "exit", PROMPT)
    shell.command("echo status $?", "status 4")


def killed(shell):
    """SIGKILL ends a stopped job, SIGTERM when it continues."""
    shell.command(JOB + " self TSTP", "Stopped")
    os.kill(shell.pid(), signal.SIGKILL)
    shell.t.wait_until("its end", lambda: shell.leader() == 0)
    shell.command("jobs", "Killed")
    shell.command(JOB + " self TSTP", "Stopped")
    os.kill(shell.pid(), signal.SIGTERM)
    shell.type("fg\n", PROMPT)
    shell.command("echo status $?", "status 143")


def beside_child(shell):
    """A child in its own group works while the program is stopped, and continues it."""
    shell.command(JOB + " child", "Stopped")
    before = shell.number("progress")
    shell.t.wait_until("the child's work", lambda: shell.number("progress") > before + 50)
    shell.let_go()
    shell.await_stop()
    shell.type("fg\n", JOB)
    shell.finish()


SCENES = {
    "SIGSTOP": foreground("STOP"), "SIGTSTP": foreground("TSTP"), "SIGTTIN": foreground("TTIN"),
    "SIGTTOU": foreground("TTOU"), "background": background, "kill": by_kill, "keys": by_keys,
    "pipeline": in_pipeline, "shell": in_shell, "killed": killed, "child": beside_child,
}


def play(t, scene, run):
    shell = Shell(t, run)
    scene(shell)
    return shell.leave()


def register(name, scene):
    @test("jobs/" + name)
    def _(t):
        run = " ".join([t.ptmem(), "-q", *harness.MORE_OPTIONS])
        native = play(t, scene, "")
        ours = play(t, scene, run)
        difference = difflib.unified_diff(native.splitlines(), ours.splitlines(), "native", "ptmem", lineterm="")
        t.check(ours == native, "the terminals differ:\n" + "\n".join(difference))


for scene_name, scene_function in SCENES.items():
    register(scene_name, scene_function)


@test("jobs/hang-up")
def hang_up(t):
    """The terminal of a stopped job is closed: the job receives SIGCONT and SIGHUP."""
    run = " ".join([t.ptmem(), "-q", *harness.MORE_OPTIONS])
    for command in ("", run):
        shell = Shell(t, command)
        shell.command(JOB + " self TSTP", "Stopped")
        pid = shell.pid()
        os.close(shell.terminal.slave)
        os.close(shell.terminal.master)
        t.wait_until("the shell's end", lambda: shell.terminal.process.poll() is not None)
        t.wait_until("the program's end", lambda: not os.path.exists("/proc/%d" % pid))


@test("jobs/attached")
def attached(t):
    """ptmem that has attached to a program does not stop with it."""
    shell = Shell(t, "")
    shell.type(JOB + " work\n", "working\n")
    with open(shell.path("stderr"), "wb") as err:
        ptmem = subprocess.Popen([t.ptmem(), *harness.MORE_OPTIONS, "-p", str(shell.pid())], cwd=shell.cwd,
                                 env=t.environment(shell.cwd), stderr=err)
    t.wait_until("ptmem to attach", lambda: b"attached to" in open(shell.path("stderr"), "rb").read())
    shell.type("\x1a", "Stopped", PROMPT)
    time.sleep(0.1)
    t.check(state(ptmem.pid) in "RSD", "ptmem is stopped, too")
    shell.type("fg\n", "continued 1")
    shell.finish()
    t.equal("status of ptmem", ptmem.wait(timeout=200), 0)
    shell.leave()
