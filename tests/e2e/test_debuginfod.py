"""Debug files from debuginfod: the real server, and servers that hang or send something else.

The library is stripped; the function in it that keeps blocks is static, so only its debug file has the name."""

import contextlib
import http.client
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import threading
import urllib.request

import harness
from harness import Fail, report_json, Skip, test
from recording_lib import Branches, LIMIT, judge_moments
from report_lib import embedded

KEEPER = "keeps_blocks"
LIBRARY = """#include <stdlib.h>
__attribute__((noinline)) static void *%s(size_t n) { void *volatile p = malloc(n); return p; }
void *keep(size_t n) { void *volatile p = %s(n); return p; }
"""
PROGRAM = """#include <stdio.h>
#include <unistd.h>
void *keep(size_t n);
int main(void)
{
	char c;
	setbuf(stdout, NULL);
	puts("ready");
	while (read(0, &c, 1) == 1) {
		keep(1000);
		puts("done");
	}
	return 0;
}
"""


class Stripped:
    """The program and its library; where the debug files of the library are, and of another of the same name."""

    def __init__(self, t):
        self.t = t
        self.program = os.path.join(t.directory, "program")
        self.debug, self.other = self.build("right", KEEPER), self.build("wrong", "of_another")
        self.run("gcc", "-o", self.program, t.file("program.c", PROGRAM), os.path.join(t.directory, "right.so"),
                 "-Wl,-rpath," + t.directory)
        notes = self.run("readelf", "-n", os.path.join(t.directory, "right.so")).out.decode()
        self.build_id = re.search(r"Build ID: (\w+)", notes).group(1)
        self.cache = os.path.join(t.directory, "cache")

    def run(self, name, *args):
        result = self.t.run([self.t.program(name), *args])
        self.t.equal("status of %s (%s)" % (name, result.err.decode()), result.status, 0)
        return result

    def build(self, name, keeper):
        library = os.path.join(self.t.directory, name + ".so")
        os.mkdir(os.path.join(self.t.directory, name))
        debug = os.path.join(self.t.directory, name, "library.debug")
        source = self.t.file(name + ".c", LIBRARY % (keeper, keeper))
        self.run("gcc", "-g", "-O1", "-fPIC", "-shared", "-Wl,--build-id", "-Wl,-soname," + name + ".so", "-o", library, source)
        self.run("objcopy", "--only-keep-debug", library, debug)
        self.run("strip", "--strip-all", library)
        return debug

    def environment(self, port, timeout=200):
        return {"DEBUGINFOD_URLS": "http://127.0.0.1:%d" % port, "DEBUGINFOD_CACHE_PATH": self.cache,
                "DEBUGINFOD_TIMEOUT": str(timeout)}

    def profile(self, env, *options):
        profile = self.t.profile([self.program], ["--threshold=0", *options], env=env, stdin=b"kkk")
        self.t.equal("status, output (%s)" % profile.messages, (profile.status, profile.out), (0, b"ready\n" + 3 * b"done\n"))
        return profile

    def has_name(self, profile):
        files = [path for of_pid in profile.files.values() for path in of_pid]
        self.t.check(files, "no profile: %s" % profile.messages)
        text = ""
        for path in files:
            with open(path, encoding="utf-8") as file:
                text += file.read()
        self.t.check("of_another" not in text, "the name is that of the wrong debug file")
        return KEEPER in text


def is_library(t):
    python = "import ctypes; ctypes.CDLL('libdebuginfod.so.1')"
    if t.run([t.program("python3"), "-c", python]).status != 0:
        raise Skip("no libdebuginfod on this machine")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def debuginfod(t, debug, build_id):
    """The real server, which has file @debug. Yields its port."""
    program, cwd = t.program("debuginfod"), t.subdirectory()
    with open(debug, "rb") as file:
        content = file.read()
    for attempt in range(5):  # another process may take the port
        port = free_port()
        with open(os.path.join(cwd, "log%d" % attempt), "wb") as log:
            server = subprocess.Popen([program, "-F", "-p", str(port), "-d", os.path.join(cwd, "db%d" % attempt), os.path.dirname(debug)],
                                      cwd=cwd, env=t.environment(cwd), stdout=log, stderr=log)

        def has_file(port=port, server=server):
            try:
                with urllib.request.urlopen("http://127.0.0.1:%d/buildid/%s/debuginfo" % (port, build_id)) as answer:
                    return answer.read() == content
            except (OSError, http.client.HTTPException):
                return server.poll() is not None

        try:
            t.wait_until("debuginfod to have the file", has_file)
            if server.poll() is None:
                yield port
                return
        finally:
            server.terminate()
            server.wait()
    raise Fail("debuginfod does not start; see %s" % cwd)


@contextlib.contextmanager
def answering(content):
    """A server that has @content for every question. Yields its port and the list of questions."""
    questions = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            questions.append(self.path)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port, questions
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def hanging():
    """A server that answers nothing. Yields its socket."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(16)
        yield server


def was_asked(server):
    return bool(select.select([server], [], [], 0)[0])


@test("debuginfod/real", limit=120)
def real(t):
    is_library(t)
    stripped = Stripped(t)
    t.equal("a name without a server", stripped.has_name(stripped.profile({})), False)
    with debuginfod(t, stripped.debug, stripped.build_id) as port:
        env = stripped.environment(port)
        t.equal("a name with --debuginfod=no", stripped.has_name(stripped.profile(env, "--debuginfod=no")), False)
        t.check(not os.path.exists(stripped.cache), "something was downloaded all the same")
        profile = stripped.profile(env, "--record=recording")
        t.equal("a name from the server", stripped.has_name(profile), True)
        printed = t.run([os.path.join(harness.BUILD, "ptmem-report"), os.path.join(profile.directory, "recording")])
        t.check(KEEPER in printed.out.decode(), "no name in the recording: %s" % printed.out.decode())
    t.equal("a name from the cache, without the server", stripped.has_name(stripped.profile(env)), True)


@test("debuginfod/none-listening")
def none_listening(t):
    is_library(t)
    stripped = Stripped(t)
    with socket.socket() as bound:  # so no other server can have the port
        bound.bind(("127.0.0.1", 0))
        profile = stripped.profile(stripped.environment(bound.getsockname()[1]))
    t.equal("names", stripped.has_name(profile), False)
    t.equal("warnings", [m for m in profile.messages if "debuginfod:" in m], [])


@test("debuginfod/garbage")
def garbage(t):
    """What comes is no ELF file, the beginning of one, or the debug file of another library."""
    is_library(t)
    stripped = Stripped(t)
    with open(stripped.other, "rb") as other, open(stripped.debug, "rb") as debug:
        contents = (b"garbage" * 1000, b"\x7fELF", debug.read()[:700], other.read())
    for i, content in enumerate(contents):
        stripped.cache = os.path.join(t.directory, "cache%d" % i)
        with answering(content) as (port, questions):
            profile = stripped.profile(stripped.environment(port), "-v")
            t.check("/buildid/%s/debuginfo" % stripped.build_id in questions, "questions: %s" % questions)
        t.equal("names", stripped.has_name(profile), False)
        t.check([m for m in profile.messages if "is not the debug file of" in m], "messages: %s" % profile.messages)


@test("debuginfod/hangs")
def hangs(t):
    is_library(t)
    stripped = Stripped(t)
    with hanging() as server:
        profile = stripped.profile(stripped.environment(server.getsockname()[1], timeout=1))
        t.check(was_asked(server), "the server was not asked")
    t.equal("names", stripped.has_name(profile), False)
    t.check([m for m in profile.messages if "nothing has arrived for 1 s" in m], "messages: %s" % profile.messages)


@test("debuginfod/attached")
def attached(t):
    """The program runs on, without a tracer, while ptmem waits for an answer; another SIGINT ends that."""
    is_library(t)
    stripped = Stripped(t)
    with hanging() as server, subprocess.Popen([stripped.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:

        def work():
            program.stdin.write(b"k")
            program.stdin.flush()
            t.equal("answer of the program", program.stdout.readline(), b"done\n")

        program.stdout.readline()
        cwd = t.subdirectory()
        with open(os.path.join(cwd, "stderr"), "wb") as err:
            ptmem = subprocess.Popen([t.ptmem(), "--stats", "-p", str(program.pid)], cwd=cwd, stderr=err,
                                     env=t.environment(cwd, **stripped.environment(server.getsockname()[1], timeout=600)))

        def log():
            with open(os.path.join(cwd, "stderr"), "rb") as file:
                return file.read()

        t.wait_until("ptmem to be attached", lambda: b"attached to process" in log())
        work()
        t.check(not was_asked(server), "the server was asked while the program was traced")
        ptmem.send_signal(signal.SIGINT)
        t.wait_until("the question", lambda: was_asked(server))
        with open("/proc/%d/status" % program.pid, encoding="ascii") as file:
            t.check("TracerPid:\t0\n" in file.read(), "the program is traced while ptmem waits")
        work()
        t.equal("ptmem", ptmem.poll(), None)
        ptmem.send_signal(signal.SIGINT)
        t.equal("status of ptmem (%s)" % log().decode(), ptmem.wait(timeout=200), 0)
        profile = harness.Profile(harness.Result(0, b"", log()), cwd)
        t.equal("allocations", profile.only_stats()["allocations"], 1)
        t.equal("profiles", sorted(os.listdir(cwd)), ["massif.out.%d" % program.pid, "stderr"])
        t.equal("names", stripped.has_name(profile), False)


@test("debuginfod/children")
def children(t):
    """A process that ends while another is traced asks no one."""
    is_library(t)
    stripped = Stripped(t)
    script = '"$0" </dev/null >/dev/null; echo ended; read line'
    cwd = t.subdirectory()
    with hanging() as server, open(os.path.join(cwd, "stderr"), "wb") as err:
        ptmem = subprocess.Popen([t.ptmem(), "--trace-children=yes", "sh", "-c", script, stripped.program], cwd=cwd, stderr=err,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 env=t.environment(cwd, **stripped.environment(server.getsockname()[1], timeout=1)))
        t.equal("output", ptmem.stdout.readline(), b"ended\n")
        t.wait_until("the profile of the child", lambda: [n for n in os.listdir(cwd) if n.startswith("massif.out.")])
        t.check(not was_asked(server), "the server was asked while the shell was traced")
        ptmem.communicate(b"\n", timeout=200)
        t.equal("status", ptmem.returncode, 0)
        t.check(was_asked(server), "the server was not asked at the end")


@test("debuginfod/progress")
def progress(t):
    """On a terminal ptmem says what it waits for; a file's name is no command to the terminal."""
    is_library(t)
    stripped = Stripped(t)
    program = os.path.join(t.subdirectory(), "a\x1b]2;b\x07c")
    shutil.copy(stripped.program, program)
    master, slave = pty.openpty()
    with hanging() as server, open(master, "rb", 0) as terminal:
        env = t.environment(t.directory, TERM="xterm", **stripped.environment(server.getsockname()[1], timeout=600))
        with open(slave, "wb", 0) as err:
            ptmem = subprocess.Popen([t.ptmem(), "-o", "/dev/null", program], cwd=t.subdirectory(), env=env, stderr=err,
                                     stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        ptmem.stdin.write(b"k")
        ptmem.stdin.close()
        text, name = b"", re.escape(b"a\\x1b]2;b\\x07c")
        while not re.search(rb"debuginfod: \d of \d: \S*" + name, text):  # a terminal's reader may get the beginning of a line
            ready = select.select([terminal], [], [], 200)[0]
            t.check(ready, "no progress after: %s" % text)
            text += terminal.read(4096)
        t.check(b"\x1b]" not in text, "the name as printed: %s" % text)
        ptmem.send_signal(signal.SIGINT)
        t.check(ptmem.wait(timeout=200) in (0, -signal.SIGINT), "status of ptmem: %s" % ptmem.returncode)


# What has names of functions, with the number of its file: each is given a name once
OPTIONS = ["--trace=heap,mmap", "--massif-out-file=%n.m", "--record=r", "--html=%n.h", "--folded=%n.f", "--flame=%n.svg",
           "--xtree-memory=full", "--xtree-memory-file=%n.kcg"]


class WithAllFiles:
    """Such a run, whose program has ended."""

    def __init__(self, t, stripped, port):
        self.cwd, env = t.subdirectory(), stripped.environment(port, timeout=600)
        self.err = os.path.join(self.cwd, "stderr")
        with open(self.err, "wb") as err:
            self.ptmem = subprocess.Popen([t.ptmem(), *OPTIONS, "--", stripped.program], cwd=self.cwd, env=t.environment(self.cwd, **env),
                                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=err)
        self.ptmem.stdin.write(b"kkk")
        self.ptmem.stdin.close()

    def names(self):
        return sorted(n for n in os.listdir(self.cwd) if n != "stderr")

    def judge(self, t, has_name):
        """All files are there; those of the heap have all 3,000 bytes, and the name if @has_name."""
        t.equal("numbers", sorted(int(n.split(".")[0]) for n in self.names() if n != "r"), list(range(1, 9)))
        of_heap = []
        for name in self.names():
            path, kind = os.path.join(self.cwd, name), name.rpartition(".")[2]
            with open(path, errors="replace", encoding="utf-8") as file:
                text = file.read()
            if kind == "r":
                text = json.dumps(report_json(t, path))
            elif kind == "h":
                text = json.dumps(embedded(path))
            of_heap += [(kind, text)] if self.is_of_heap(kind, text) else []
        t.equal("files of the heap", sorted(kind for kind, _ in of_heap), ["f", "h", "kcg", "m", "r", "svg"])
        t.equal("files with the name", [kind for kind, text in of_heap if (KEEPER in text) != has_name], [])

    @staticmethod
    def is_of_heap(kind, text):
        if kind == "svg":
            return "bytes not freed" in text
        if kind == "f":
            return sum(int(line.rpartition(" ")[2]) for line in text.splitlines()) == 3000
        if kind == "m":
            return "mem_heap_B=3000" in text
        if kind == "kcg":
            return re.search(r"^totals: 3000 ", text, re.M)
        return json.loads(text)["timeline"]["live_bytes"][-1] == 3000


@test("debuginfod/killed-while-waiting")
def killed_while_waiting(t):
    """What was measured does not wait for the network: all files are there before the first answer, and nothing is said of them."""
    is_library(t)
    stripped = Stripped(t)
    with hanging() as server:
        run = WithAllFiles(t, stripped, server.getsockname()[1])
        t.wait_until("the question", lambda: was_asked(server))
        run.ptmem.kill()
        run.ptmem.wait()
    run.judge(t, False)
    with open(run.err, encoding="utf-8") as file:
        t.check("written to" not in file.read() and "xtree" not in file.read(), "files are announced that are replaced later")


@test("debuginfod/record-limit")
def record_limit(t):
    """A recording that is thinned has all of it before the first answer, too."""
    is_library(t)
    stripped, program = Stripped(t), os.path.join(t.directory, "branches")
    stripped.run("gcc", "-O1", "-s", "-Wl,--build-id", "-o", program, os.path.join(harness.ROOT, "tests/targets/branches.c"))
    with hanging() as server:
        b = Branches(t, program=program, **stripped.environment(server.getsockname()[1], timeout=600))
        b.round()
        b.thinned()
        b.round()
        b.ptmem.stdin.close()
        t.wait_until("the question", lambda: was_asked(server))
        b.ptmem.kill()
        b.ptmem.wait()
    t.check(max(b.sizes()) <= LIMIT, "files of %s bytes" % b.sizes())
    data = report_json(t, b.path)
    judge_moments(t, data)
    t.equal("live", data["timeline"]["live_bytes"][-1], t.truth(b.cwd)["live"])


@test("debuginfod/all-files")
def all_files(t):
    """The names from a server are in all of them; no file is left that had other names."""
    is_library(t)
    stripped = Stripped(t)
    with open(stripped.debug, "rb") as file, answering(file.read()) as (port, _):
        run = WithAllFiles(t, stripped, port)
        t.equal("status", run.ptmem.wait(), 0)
    run.judge(t, True)
    with open(run.err, encoding="utf-8") as file:
        t.equal("announced files", len(re.findall(r"(?:written to|xtree memory report:) +/", file.read())), len(run.names()))
