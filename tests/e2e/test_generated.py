"""Code that a program generates while it runs: its functions have names, if the program publishes them in a perf map or a
jitdump, and stacks lead through them (targets/generated.c, CPython's trampolines, V8)."""

import os

from harness import report_json, test
from inspect_lib import interpreter
from massif import Massif
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


def register_python(minor, mode):
    @test("generated/python-3.%d-%s" % (minor, mode))
    def _(t):
        script = t.file("cart.py", PROGRAM)
        profile = t.profile([interpreter(minor), "-X", "perf", script], env={"PYTHONMALLOC": "malloc"},
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
register_python(12, "break")
