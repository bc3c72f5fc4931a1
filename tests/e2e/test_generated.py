"""Code that a program generates while it runs: its functions have names, if the program publishes them in a perf map or a
jitdump, and stacks lead through them (targets/generated.c, CPython's trampolines, V8)."""

import os
import subprocess

from harness import report_json, test
from inspect_lib import interpreter
from massif import Massif
from process_lib import Attached
from test_truth import join_frames

MODES = {"auto": (), "break": ("--probes=break",), "jump": ("--probes=jump",)}


def remove_map(pid):
    path = "/tmp/perf-%d.map" % pid
    if os.path.lexists(path):
        os.unlink(path)


def check_complete(t, profile):
    stats = profile.only_stats()
    t.equal("complete stacks", stats["complete stacks"], stats["stacks"])


def run(t, how, options):
    profile = t.profile([t.target("gcc-O2-pie", "generated"), how], options=["--threshold=0", *options])
    t.equal("status (%s)" % profile.err, profile.status, 0)
    remove_map(profile.only_stats()["pid"])
    check_complete(t, profile)
    return profile


def paths_of(massif):
    return {join_frames(p): n for p, n in massif.peak()["tree"].paths().items()}


def middle_paths(massif):
    return {p: n for p, n in paths_of(massif).items() if "middle" in p}


def read_lines(profile, name):
    with open(os.path.join(profile.directory, name), encoding="utf-8") as file:
        return file.read().splitlines()


def register(how, mode):
    @test("generated/%s-%s" % (how, mode))
    def _(t):
        profile = run(t, how, MODES[mode])
        t.equal("bytes by path", middle_paths(profile.only_massif()), t.true_paths(profile.directory))


for _how in ("map", "dump", "late"):
    for _mode in MODES:
        register(_how, _mode)


def register_no_file(how):
    @test("generated/no-map-%s" % how)
    def _(t):
        """What has the map's name is not a file: nothing waits for it, and stacks are complete without."""
        profile = run(t, how, ())
        found = paths_of(profile.only_massif())
        t.equal("bytes in nameless functions",
                sum(n for p, n in found.items() if len(p) == 5 and (p[1], p[2], p[4]) == ("???", "middle", "keep")),
                sum(t.true_paths(run(t, "map", ()).directory).values()))


register_no_file("fifo")
register_no_file("link")


@test("generated/forms")
def forms(t):
    """A recording and an event file have the names, too, and what reads them."""
    profile = run(t, "map", ("--record=r", "--events=e", "--folded=f"))
    names = {n for p in t.true_paths(profile.directory) for n in p}
    path = os.path.join(profile.directory, "r")
    functions = set(report_json(t, path)["frames"]["function"])
    t.equal("names missing in the recording", names - functions, set())
    folded = {n for line in read_lines(profile, "f") for n in line.rsplit(" ", 1)[0].split(";")}
    t.equal("names missing in folded stacks", names - folded, set())
    again = t.run([t.ptmem(), "--threshold=0", "--replay=" + os.path.join(profile.directory, "e"), "--massif-out-file=m"])
    t.equal("status of the replay", again.status, 0)
    t.equal("bytes by path in the replay", middle_paths(Massif(os.path.join(again.cwd, "m"))), t.true_paths(profile.directory))


# -- CPython's trampolines (-X perf) --

PROGRAM = """
import json
class Cart:
    def add(self, i):
        self.items.append(bytes(2000 + i))
    def fill(self):
        self.items = []
        for i in range(300):
            self.add(i)
        return [json.loads(json.dumps({"a": i, "b": [i] * 20})) for i in range(100)]
def main():
    cart = Cart()
    cart.rest = cart.fill()
    return cart
cart = main()
"""


def register_python(minor, mode, program=PROGRAM):
    @test("generated/python-3.%d-%s" % (minor, mode))
    def _(t):
        script = t.file("cart.py", program)
        profile = t.profile([interpreter(minor), "-S", "-X", "perf", script], env={"PYTHONMALLOC": "malloc"},
                            options=["--depth=200", *MODES[mode]])
        t.equal("status", profile.status, 0)
        remove_map(profile.only_stats()["pid"])
        check_complete(t, profile)
        wanted = ("main", "Cart.fill", "Cart.add")
        found = sum(n for path, n in profile.only_massif().peak()["tree"].paths().items()
                    if tuple(f for f in path if f in wanted) == wanted)
        t.check(found >= 300 * 2000, "only %d bytes in Cart.add" % found)


for _minor in (12, 13):
    register_python(_minor, "auto")
# without what imports many files
register_python(12, "break", PROGRAM.replace("import json", "").replace('json.loads(json.dumps({"a": i, "b": [i] * 20}))', "[i] * 20"))


# -- V8 --

SERVER = """
const kept = [];
function makeOrder(i) { return Buffer.alloc(20000 + i, 'x'); }
function handleRequest() {
    for (let i = 0; i < 10; i++)
        kept.push(makeOrder(i));
    if (kept.length > 200)
        kept.splice(0, 100);
}
let requests = 0;
setInterval(() => { handleRequest(); if (++requests % 100 === 0) console.log(requests); }, 1);
"""


@test("generated/node-attached")
def node(t):
    """A server's own functions are on the stacks of what it allocates, and all of these are complete."""
    cwd = t.subdirectory()
    command = [t.program("node"), "--perf-basic-prof", t.file("server.js", SERVER)]
    with subprocess.Popen(command, cwd=cwd, env=t.environment(cwd), stdout=subprocess.PIPE) as server:
        try:
            t.equal("requests", server.stdout.readline(), b"100\n")
            attached = Attached(t, server.pid, ["--depth=200", "--folded=f", "--view=total"]).wait_attached()
            os.set_blocking(server.stdout.fileno(), False)
            server.stdout.read()  # what it wrote while ptmem attached
            os.set_blocking(server.stdout.fileno(), True)
            for _ in range(8):
                server.stdout.readline()
            profile = attached.detach()
            check_complete(t, profile)
            # of all that it allocated: how many are live, also at the peak, is its garbage collector's choice
            paths = dict(line.rsplit(" ", 1) for line in read_lines(profile, "f"))
            buffers = {p: int(n) for p, n in paths.items() if "NodeArrayBufferAllocator::" in p}
            t.check(sum(buffers.values()) >= 20000, "no buffer: %s" % buffers)
            other = [p for p in buffers if "handleRequest" not in p]
            t.check(not other, "not by the server's function: %s" % other[:2])
        finally:
            server.kill()
            remove_map(server.pid)


# -- heaps that are not malloc's --

MAPPER = """
import mmap
m = mmap.mmap(-1, 100 << 20)
for i in range(100):
    m.write(b"x" * (1 << 20))
"""


@test("generated/hint-at-other-heaps")
def hint(t):
    def hints(*argv, options=()):
        return [m for m in t.profile(argv, options).messages if "anonymous memory" in m]

    mapper = ("/usr/bin/python3", "-c", MAPPER)
    t.check(len(hints(*mapper)) == 1 and "--trace=heap,mmap" in hints(*mapper)[0], "no hint at mapped memory")
    t.equal("hints if it is traced", hints(*mapper, options=["--trace=heap,mmap"]), [])
    t.equal("hints at a small program", hints(t.target("gcc-O2-pie", "mixed")), [])
    script = t.file("objects.js", "const a = []; for (let i = 0; i < 400000; i++) a.push({i, t: [i, i + 1]});")
    found = hints(t.program("node"), script)
    t.check(len(found) == 1 and "V8" in found[0], "no hint at V8's heap: %s" % found)
