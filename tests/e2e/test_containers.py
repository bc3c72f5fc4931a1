"""Processes with other namespaces or another root directory: their files are theirs, not ours of the same names.

The program and a library are built twice: the library that the container has at some path keeps blocks in another
function than ours at the same path. Tests named user/ need no root: ptmem and the program run as an ordinary user,
who may have a user namespace, and no capability outside of it."""

import contextlib
import errno
import os
import re
import shutil
import signal
import subprocess

import harness
from harness import Fail, Skip, test
from process_lib import guardians

HERE = os.path.dirname(os.path.abspath(__file__))
NOBODY = 65534
ROUND, KEPT = 1000, 10  # allocations of a round: those that are released, and those that stay

PROGRAM = """#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
void *keep(size_t n);
__attribute__((noinline)) static void use(void) { void *volatile p = malloc(100); free(p); }
int main(void)
{
	char c;
	setbuf(stdout, NULL);
	puts("ready");
	while (read(0, &c, 1) == 1) {
		for (int i = 0; i < %d; i++)
			use();
		for (int i = 0; i < %d; i++)
			keep(1000);
		puts("done");
	}
	puts("OK");
	return 0;
}
""" % (ROUND, KEPT)
LIBRARY = """#include <stdlib.h>
__attribute__((noinline)) static void *%s(size_t n) { void *volatile p = malloc(n); return p; }
void *keep(size_t n) { void *volatile p = %s(n); return p; }
"""


def compile_c(t, *args):
    run = t.run([t.program("gcc"), "-O1", "-g", *args])
    t.equal("status of gcc (%s)" % run.err.decode(), run.status, 0)


class Container:
    """A root directory with the program, and how to start it there."""

    def __init__(self, t, kind, is_user):
        self.t, self.kind, self.is_user = t, kind, is_user
        self.as_nobody = is_user and os.geteuid() == 0
        if not is_user and os.geteuid() != 0:
            raise Skip("needs root")
        self.who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if self.as_nobody else {}
        script = os.path.join(HERE, "lib", "container.py")
        self.ptmem, self.script = (t.for_others(path) if self.as_nobody else path for path in (t.ptmem(), script))
        self.root = self.make_directory("root")
        self.libraries = self.make_directory("lib")
        self.library, self.program = os.path.join(self.libraries, "libkeep.so"), os.path.join(self.libraries, "contained")
        self.build("of_host", self.library)
        compile_c(t, "-o", self.program, t.file("program.c", PROGRAM), self.library)
        for path in t.libraries(self.program) + [self.program]:
            os.makedirs(os.path.dirname(self.inside(path)), exist_ok=True)
            shutil.copy(path, self.inside(path))
        os.unlink(self.inside(self.library))
        self.build("of_container", self.inside(self.library))
        self.check_namespaces()

    def make_directory(self, name):
        path = os.path.join(self.t.directory, name)
        os.mkdir(path)
        os.chmod(path, 0o755)
        return path

    def inside(self, path):
        """The file that has this name in the container."""
        return self.root + path

    def build(self, function, path, *options):
        compile_c(self.t, *options, "-fPIC", "-shared", "-o", path, self.t.file("keep.c", LIBRARY % (function, function)))

    def unshare(self, *flags):
        flags = (("-Ur",) if self.is_user else ()) + flags
        return [self.t.program("unshare"), *flags] if flags else []

    def check_namespaces(self):
        run = subprocess.run([*self.unshare("-m"), "true"], stderr=subprocess.PIPE, check=False, **self.who)
        if run.returncode != 0:
            raise Skip("no namespaces here: %s" % run.stderr.decode().strip())

    def command(self):
        t, python = self.t, self.t.program("python3")
        chroot = [t.program("chroot"), self.root, self.program]
        return {
            "pid": [*self.unshare("-p", "-f", "--mount-proc"), self.program],
            "mounts": [*self.unshare("-m"), "sh", "-c", 'mount --bind "$1" "$2" && exec "$0"', self.program,
                       self.inside(self.library), self.library],
            "chroot": [*self.unshare(), *chroot],
            "mounts-chroot": [*self.unshare("-m"), *chroot],
            "pivot": [*self.unshare("-m", "-p", "-f"), python, self.script, self.root, self.program],
        }[self.kind]

    def keeper(self):
        return "of_host" if self.kind == "pid" else "of_container"

    def has_own_pid(self):
        return self.kind in ("pid", "pivot")

    def directory(self):
        """Where whoever runs ptmem may write."""
        path = self.t.subdirectory()
        os.chmod(path, 0o777)
        return path

    def run(self, argv, **how):
        cwd = self.directory()
        done = subprocess.run(argv, cwd=cwd, env=self.t.environment(cwd), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False, **self.who, **how)
        result = harness.Result(done.returncode, done.stdout, done.stderr)
        result.cwd = cwd
        return result


def parent_of(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="utf-8", errors="replace") as file:
            return int(file.read().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def name_of(pid):
    try:
        with open("/proc/%d/comm" % pid, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def descendant(pid, name):
    """The process of this name that @pid has become or created; not what that has created for its own work."""
    found = []
    for above in (int(n) for n in os.listdir("/proc") if n.isdigit()):
        line = [above]
        while above > 1 and above != pid:
            above = parent_of(above)
            line.append(above)
        if above == pid and name_of(line[0]) == name:
            found.append(line)
    if not found:
        raise Fail("no process %s" % name)
    return min(found, key=len)[0]


class Running:
    """The program in its container."""

    def __init__(self, container, env=None):
        t = self.t = container.t
        self.container, self.rounds = container, 0
        cwd = t.subdirectory()
        self.process = subprocess.Popen(container.command(), cwd="/", env=t.environment(cwd, **(env or {})),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **container.who)
        line = self.process.stdout.readline()
        if line != b"ready\n":
            raise Fail("the program did not start: %s" % self.process.communicate()[1].decode())
        self.pid = descendant(self.process.pid, "contained")

    def round(self):
        self.process.stdin.write(b"r")
        self.process.stdin.flush()
        self.t.equal("answer of the program", self.process.stdout.readline(), b"done\n")
        self.rounds += 1

    def status(self, key):
        with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
            return re.search(r"^%s:\s*(.*)" % key, file.read(), re.M).group(1)

    def text(self):
        """Its code, as mapped."""
        with open("/proc/%d/maps" % self.pid, encoding="utf-8") as maps, open("/proc/%d/mem" % self.pid, "rb", 0) as memory:
            found = []
            for start, end in re.findall(r"^([0-9a-f]+)-([0-9a-f]+) r-xp .*/", maps.read(), re.M):
                memory.seek(int(start, 16))
                found.append(memory.read(int(end, 16) - int(start, 16)))
            return found

    def end(self):
        """It runs as before, and ends by itself."""
        self.round()
        self.t.equal("tracer", self.status("TracerPid"), "0")
        out, err = self.process.communicate(timeout=200)
        self.t.equal("status and output", (self.process.returncode, out, err), (0, b"OK\n", b""))


@contextlib.contextmanager
def running(container):
    program = Running(container)
    try:
        yield program
    finally:
        program.process.stdin.close()  # which ends it
        program.process.wait()


class Plain:
    """The program, but neither in a container nor in a namespace."""

    def __init__(self, container):
        self.process = subprocess.Popen([container.program], cwd="/", stdin=subprocess.PIPE, stdout=subprocess.PIPE, **container.who)
        self.pid = self.process.pid

    def __enter__(self):
        self.process.stdout.readline()
        return self

    def __exit__(self, *_):
        self.process.communicate()


class Profiler:
    """ptmem -p, attached. @before: what executes it; @pid: the program's, as ptmem sees it."""

    def __init__(self, program, options=(), before=(), pid=None):
        self.program, container = program, program.container
        self.t, self.cwd = container.t, container.directory()
        self.log = os.path.join(self.cwd, "ptmem-stderr")
        with open(self.log, "wb") as err:
            self.process = subprocess.Popen(
                [*before, container.ptmem, "--stats", "--threshold=0", *harness.MORE_OPTIONS, "-p", str(pid or program.pid), *options],
                cwd=self.cwd, env=self.t.environment(self.cwd), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=err, **container.who)

    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def wait_for(self, pattern):
        def is_there():
            if self.process.poll() is not None:
                raise Fail("ptmem ended with %d: %s" % (self.process.returncode, self.errors()))
            return re.search(pattern, self.errors(), re.M)

        self.t.wait_until("ptmem to say " + pattern, is_there)
        return self

    def wait_attached(self):
        return self.wait_for("^ptmem: attached to process")

    def detach(self):
        os.kill(descendant(self.process.pid, "ptmem"), signal.SIGINT)
        self.t.equal("status of ptmem (%s)" % self.errors(), self.process.wait(timeout=200), 0)
        with open(self.log, "rb") as file:
            return harness.Profile(harness.Result(0, b"", file.read()), self.cwd)


def names_in(path):
    """Functions of the library in the file of a profile."""
    with open(path, encoding="utf-8", errors="replace") as file:
        return set(re.findall(r"\bof_[a-z]+\b", file.read()))


def check_profile(t, profile, earlier, rounds, keeper):
    """@earlier: rounds before the attach, whose blocks ptmem finds."""
    stats = profile.only_stats()
    t.counts("profile", stats, {"allocations": rounds * (ROUND + KEPT), "frees": rounds * ROUND,
                                "blocks": (earlier + rounds) * KEPT})
    t.equal("functions that keep blocks", set().union(*map(names_in, profile.files[stats["pid"]])), {keeper})


KINDS = ("pid", "mounts", "chroot", "mounts-chroot", "pivot")


def register(name, kinds, function):
    for who in ("root", "user"):
        for kind in kinds:
            @test("containers/%s/%s/%s" % (who, kind, name))
            def _(t, is_user=who == "user", kind=kind):
                function(t, Container(t, kind, is_user))


def attached(t, container):
    with running(container) as program:
        program.round()
        profiler = Profiler(program).wait_attached()
        for _ in range(3):
            program.round()
        profile = profiler.detach()
        check_profile(t, profile, 1, 3, container.keeper())
        own = ", 1 in its pid namespace" if container.has_own_pid() else ""
        text = "\n".join(profile.messages)
        t.check("attached to process %d%s (1 thread paused" % (program.pid, own) in text, text)
        if not [o for o in harness.MORE_OPTIONS if o.startswith("--probes=")]:
            t.check("stays on breakpoints" not in text, text)
        program.end()


register("attached", KINDS, attached)


def stripped(t, container):
    """The container's debug files are those of the container: this one has the library's, and no one else has."""
    library = container.inside(container.library)
    debug = container.inside("/usr/lib/debug" + container.library)
    os.makedirs(os.path.dirname(debug))
    container.build("of_container", library, "-Wl,--build-id=none")
    for args in (["--only-keep-debug", library, debug], ["--strip-all", "--add-gnu-debuglink=" + debug, library]):
        t.equal("status of objcopy", t.run([t.program("objcopy"), *args]).status, 0)
    with running(container) as program:
        profiler = Profiler(program).wait_attached()
        program.round()
        check_profile(t, profiler.detach(), 0, 1, "of_container")
        program.end()


register("stripped", ("chroot", "pivot"), stripped)


def replaced(t, container):
    """The file of a mapped library is another one meanwhile. The same contents will do, others must not be used."""
    library, other = container.inside(container.library), os.path.join(t.directory, "other.so")
    container.build("of_other", other)

    def replace(by):
        shutil.copy(by, library + ".new")
        os.rename(library + ".new", library)

    with running(container) as program:
        replace(library)
        profiler = Profiler(program).wait_attached()
        program.round()
        profile = profiler.detach()
        check_profile(t, profile, 0, 1, "of_container")
        replace(other)
        profiler = Profiler(program).wait_attached()
        program.round()
        profile = profiler.detach()
        keepers = set().union(*map(names_in, profile.files[program.pid]))
        said = [m for m in profile.messages if "the file of" in m]
        if container.is_user:
            t.equal("functions that keep blocks", keepers, set())
            t.equal("messages", len(said), 1)
            t.check("the file of %s is gone" % container.library in said[0], said[0])
        else:  # which may open mapped files without their names
            t.equal("functions that keep blocks, messages", (keepers, said), ({"of_container"}, []))
        t.equal("allocations", profile.only_stats()["allocations"], ROUND + KEPT)
        program.end()


register("replaced", ("chroot", "pivot"), replaced)


def killed(t, container):
    """ptmem dies: the guardian, or a later ptmem, leaves the program as it was."""
    with running(container) as program:
        before = program.text()
        for dies_too in (False, True):
            profiler = Profiler(program).wait_attached()
            program.round()
            if dies_too:
                for pid in guardians(t):
                    os.kill(pid, signal.SIGKILL)
            os.kill(descendant(profiler.process.pid, "ptmem"), signal.SIGKILL)
            profiler.process.wait()
            for _ in range(3):
                program.round()
            if dies_too:
                Profiler(program).wait_attached().detach()
            t.wait_until("the text of before", lambda: program.text() == before and not guardians(t))
        program.end()


register("killed", ("pivot",), killed)


def tools(t, container):
    """Leak check, inspection, recordings: with the names of the container."""
    with running(container) as program:
        program.round()
        run = container.run([container.ptmem, "--inspect", "-p", str(program.pid)])
        t.equal("status of --inspect (%s)" % run.err.decode(), run.status, 0)
        t.check(b"glibc" in run.out and container.library.encode() not in run.err, run.out.decode())
        profiler = Profiler(program, ["--leak-check", "--record=recording", "--html=report.html", "--listen", "-v"]).wait_attached()
        address = re.search(r"listening at (http://\S+)", profiler.errors()).group(1)
        program.round()
        live = container.run([t.program("python3"), "-c", "from urllib.request import *; urlretrieve('%srecording', 'live')" % address])
        t.equal("status of the download (%s)" % live.err.decode(), live.status, 0)
        profile = profiler.detach()
        check_profile(t, profile, 1, 1, "of_container")
        t.check(re.search(r"leaks? of process .*\n(.*\n)*.*of_container", profiler.errors()), profiler.errors())
        for path in (os.path.join(profile.directory, "recording"), os.path.join(live.cwd, "live")):
            text = t.run([os.path.join(harness.BUILD, "ptmem-report"), path]).out.decode()
            t.check("of_container" in text and "of_host" not in text, path + ": " + text)
        program.end()


register("tools", ("pivot",), tools)


def sidecar(t, container):
    """ptmem in the pid namespace of the program, but with files of its own: shareProcessNamespace of Kubernetes."""
    with running(container) as program:
        before = [t.program("nsenter"), *(("-U", "--preserve-credentials") if container.is_user else ()), "-p", "-t", str(program.pid),
                  t.program("unshare"), "-m", "sh", "-c", 'mount -t proc proc /proc && exec "$@"', "sh"]
        profiler = Profiler(program, before=before, pid=1).wait_attached()
        t.check("attached to process 1 (1 thread" in profiler.errors(), profiler.errors())
        program.round()
        profile = profiler.detach()
        check_profile(t, profile, 0, 1, "of_container")
        t.equal("files", sorted(profile.files), [1])
        program.end()


register("sidecar", ("pivot",), sidecar)


def started(t, container):
    """A program that enters its namespaces under ptmem, and what ptmem-memusage says of it."""
    def run(*argv):
        return container.run([*argv, *container.command()], input=b"rr")

    result = run(container.ptmem, "--stats", "--threshold=0", "--trace-children=yes", *harness.MORE_OPTIONS)
    profile = harness.Profile(result, result.cwd)
    t.equal("status, output", (profile.status, profile.out), (0, b"ready\ndone\ndone\nOK\n"))
    stats = [s for s in profile.stats if s["allocations"] == 2 * (ROUND + KEPT) and s["blocks"] == 2 * KEPT]
    t.equal("profiles with the allocations of the program", len(stats), 1)
    t.equal("functions that keep blocks", set().union(*map(names_in, profile.files[stats[0]["pid"]])), {"of_container"})
    if container.as_nobody and container.kind == "pivot":
        return  # root's test asks it
    memusage = run(container.ptmem, "--memusage", "--trace-children=yes", "-o", "/dev/null")
    t.check(re.search(rb"malloc\|\s+%d\s+%d " % (2 * (ROUND + KEPT), 2 * (ROUND * 100 + KEPT * 1000)), memusage.err),
            memusage.err.decode())


register("started", ("chroot", "pivot"), started)


# ---- names that change while they are mapped ----

MOVING = """#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void use(void) { for (int i = 0; i < 1000; i++) { void *volatile p = malloc(100); free(p); } }
int main(int argc, char **argv)
{
	use();
	if (argc == 3 ? chroot(argv[1]) : rename(argv[1], argv[2]))
		return 2;
	if (!dlopen(argv[argc - 1], RTLD_NOW)) /* after which ptmem reads the maps */
		return 3;
	use();
	return 0;
}
"""


def moving(t, command, env=None):
    for probes in ("auto", "break"):
        run = t.run([t.ptmem(), "--stats", "--probes=" + probes, *command(), "./libkeep.so"], cwd=t.directory, env=env)
        profile = harness.Profile(run, t.directory)
        t.equal("status (%s)" % run.err.decode(), run.status, 0)
        stats = profile.only_stats()
        t.equal("unknown frees, functions not watched", (stats["unknown"], stats["unwatched"]), (0, 0))
        t.check(2000 <= stats["allocations"] <= 2100, "allocations: %d" % stats["allocations"])


@test("containers/moved/renamed")
def renamed(t):
    """The C library gets another name: its functions stay watched."""
    compile_c(t, "-o", os.path.join(t.directory, "moving"), t.file("moving.c", MOVING))
    compile_c(t, "-fPIC", "-shared", "-o", os.path.join(t.directory, "libkeep.so"), t.file("keep.c", LIBRARY % ("f", "f")))
    library = next(p for p in t.libraries(os.path.join(t.directory, "moving")) if "/libc.so" in p)

    def command():
        shutil.copy(library, os.path.join(t.directory, "libc.so.6"))
        return ["./moving", "libc.so.6", "libc.renamed"]

    moving(t, command, {"LD_LIBRARY_PATH": t.directory})


# ---- what is missing ----

def refusal(t, container, pid, before):
    run = container.run([*before, container.ptmem, "-o", "/dev/null", "-p", str(pid)])
    t.check(run.status != 0, "ptmem attached")
    return run.err.decode()


@test("containers/refused/user-namespace")
def refused_user_namespace(t):
    container = Container(t, "pid", True)
    with Plain(container) as program:
        said = refusal(t, container, program.pid, container.unshare())
        t.check("it is in another user namespace, in which ptmem has no CAP_SYS_PTRACE" in said, said)


@test("containers/refused/capability")
def refused_capability(t):
    container = Container(t, "pid", False)
    with Plain(container) as program:
        said = refusal(t, container, program.pid, [t.program("setpriv"), "--bounding-set=-sys_ptrace"])
        t.check("ptmem has no CAP_SYS_PTRACE" in said, said)


# Forbids ptrace, and executes a program.
FILTER = """import ctypes, os, struct, sys
code = struct.pack("HBBI" * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 101, 6, 0, 0, 0x50000 | %d, 6, 0, 0, 0x7fff0000)
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]
libc, program = ctypes.CDLL(None), Program(4, code)
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit("no seccomp")
os.execv(sys.argv[1], sys.argv[1:])
"""


@test("containers/refused/seccomp")
def refused_seccomp(t):
    container = Container(t, "pid", os.geteuid() != 0)
    for error in (errno.EPERM, errno.ENOSYS):
        before = [t.program("python3"), "-c", FILTER % error]
        with Plain(container) as program:
            said = refusal(t, container, program.pid, before)
            t.check("a seccomp filter forbids ptrace here" in said, said)
        run = t.run([*before, t.ptmem(), "-o", "/dev/null", "true"])
        t.check(b"a seccomp filter forbids ptrace here" in run.err, "started: %s" % run.err.decode())


@test("containers/refused/proc")
def refused_proc(t):
    container = Container(t, "pid", os.geteuid() != 0)
    for flags, script, said in (
            (("-p", "-f"), "", "/proc shows another pid namespace than that of ptmem"),
            (("-m",), "mount -t tmpfs none /proc && ", "/proc is not mounted")):
        run = container.run([*container.unshare(*flags), "sh", "-c", script + 'exec "$@"', "sh", container.ptmem, "-o", "/dev/null",
                             "sh", "-c", "echo it ran"])
        t.check(run.status != 0 and said in run.err.decode() and not run.out, "%r" % [run.status, run.err, run.out])


# ---- a kernel whose memfds may not be executable ----

@test("containers/memfd-noexec")
def memfd_noexec(t):
    """vm.memfd_noexec, of a pid namespace: pads need no executable memfd."""
    container = Container(t, "pid", False)
    for level in (0, 1, 2):
        run = t.run([*container.unshare("-p", "-f", "--mount-proc"), "sh", "-c",
                     'echo "$0" >/proc/sys/vm/memfd_noexec || exit 77; exec "$@"', str(level), t.ptmem(), "--stats",
                     *harness.MORE_OPTIONS, container.program], stdin=b"rr")
        if run.status == 77:
            raise Skip("no sysctl vm.memfd_noexec here")
        text = run.err.decode()
        t.equal("status (%s)" % text, run.status, 0)
        t.check("stays on breakpoints" not in text, text)
        t.check("ptmem: allocations: %d\n" % (2 * (ROUND + KEPT)) in text, text)
