"""Mapped pages, brk, mmap and page faults, compared with the program's own counts and the kernel's."""

import ctypes
import glob
import mmap
import os
import subprocess

import massif
from harness import Fail, test
from process_lib import EVERYTHING, VARIANTS, bytes_of, compare, last_tree, output, truth


def started(t, variant, source, actions, options=()):
    profile = t.profile([t.target(variant, "mappings"), *actions],
                        options=["--trace=" + source, *EVERYTHING, *options])
    t.equal("status", profile.status, 0)
    return profile


def attached(t, variant, options, actions):
    """Attaches while the program waits; returns (directory, what it said)."""
    cwd = t.subdirectory()
    program = subprocess.Popen([t.target(variant, "mappings"), "-w", *actions], cwd=cwd, env=t.environment(cwd),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    ready = program.stdout.readline()
    with open(os.path.join(cwd, "ptmem-stderr"), "wb") as err:
        ptmem = subprocess.Popen([t.ptmem(), "-p", str(program.pid), *options, *EVERYTHING], cwd=cwd,
                                 env=t.environment(cwd), stderr=err, stdin=subprocess.DEVNULL)

    def is_attached():
        with open(os.path.join(cwd, "ptmem-stderr"), "rb") as err:
            text = err.read()
        if ptmem.poll() is not None:
            raise Fail("ptmem ended: %r" % text)
        return b"attached" in text

    t.wait_until("ptmem to attach", is_attached)
    out, _ = program.communicate(b"x")
    t.equal("status of the program", program.returncode, 0)
    t.equal("status of ptmem", ptmem.wait(timeout=200), 0)
    return cwd, truth(ready + out)


for v in VARIANTS:
    # beside a program at fixed addresses the heap is elsewhere, all else is the kernel's and the C library's
    for s, a in (("brk", "brk"), ("mmap", "mmap"), ("mmap", "threads"), ("faults", "faults"))[:None if v == VARIANTS[0] else 1]:
        @test("mappings/%s/%s" % (v, a))
        def _(t, v=v, s=s, a=a):
            profile = started(t, v, s, [a])
            compare(t, output(profile.directory, "." + s), truth(profile.out)[s], "\n".join(profile.messages))

        @test("mappings/%s/%s-attached" % (v, a))
        def _(t, v=v, s=s, a=a):
            cwd, known = attached(t, v, ["--trace=" + s], [a])
            with open(os.path.join(cwd, "ptmem-stderr"), encoding="utf-8") as err:
                compare(t, output(cwd, "." + s), known[s], err.read())


@test("mappings/kinds")
def _(t):
    """File, anonymous, stack and shared mappings are distinguished by the innermost frame."""
    profile = started(t, "gcc-O2-pie", "mmap", ["mmap"])
    tree = last_tree(t, output(profile.directory, ".mmap"))
    by_kind = {c.name: c for c in tree.children}
    for kind, function, pages in (("[file mappings]", "map_file", 3), ("[anonymous]", "map_cut", 70),
                                  ("[stack]", "map_stack", 16), ("[shared memory]", "map_shared", 6)):
        t.check(kind in by_kind, "no %s among %s" % (kind, sorted(by_kind)))
        t.equal("bytes of %s below %s" % (function, kind), bytes_of(by_kind[kind], [function]), pages * 4096)


@test("mappings/all-sources")
def _(t):
    """All at once, with the heap: each has its own file and its own truth."""
    profile = started(t, "gcc-O2-pie", "heap,brk,mmap,faults", ["brk", "mmap", "faults"])
    known = truth(profile.out)
    for source in ("brk", "mmap", "faults"):
        compare(t, output(profile.directory, "." + source), known[source], "\n".join(profile.messages))
    t.check(os.path.exists(output(profile.directory, "[0-9]")), "no profile of the heap")


def keep_in_memory(t, program):
    """The pages of the program's objects, until the test ends. The kernel maps those around a fault that are in memory:
    where it takes them away again, the number of faults is another one each time."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.mlock.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    for path in [program, *t.libraries(program)]:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            at = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
        t.equal("mlock of " + path, libc.mlock(at, size), 0)


@test("mappings/faults-beside-heap")
def _(t):
    """However calls are caught: the program's own faults, each at its place, none of what ptmem has in it. Objects lie
    at the same addresses each time, since the kernel maps 64 KiB of a file around a fault. There is room for all of them, 512
    at least, however late ptmem reads them."""
    for name, *args in ("mixed", "1", "300", "20"), ("views",):
        keep_in_memory(t, t.target("gcc-O2-pie", name))
        found = {}
        for way in ("break", "jump", "auto"):
            cwd = t.subdirectory()
            run = t.run(["setarch", "-R", t.ptmem(), "--probes=" + way, "--trace=heap,faults", "--threshold=0", "--",
                         t.target("gcc-O2-pie", name), *args], cwd=cwd)
            t.equal("status", run.status, 0)
            t.check(b" lost: " not in run.err, "page faults were lost: %r" % run.err)
            found[way] = last_tree(t, output(cwd, ".faults")).paths()
        t.equal("faults of %s by jumps" % name, found["jump"], found["break"])
        t.equal("faults of %s by both" % name, found["auto"], found["break"])


@test("mappings/fork")
def _(t):
    profile = started(t, "gcc-O2-pie", "mmap", ["fork"])
    sizes = sorted(bytes_of(last_tree(t, f), ["map_child"]) for f in glob.glob(profile.directory + "/massif.out.*"))
    t.equal("bytes that parent and child mapped in map_child", sizes, [0, 7 * 4096])


@test("mappings/exec-under-filter")
def _(t):
    """Calls of a child that is no longer profiled still work."""
    profile = started(t, "gcc-O2-pie", "brk,mmap", ["exec", "mmap"])
    compare(t, output(profile.directory, ".mmap"), truth(profile.out)["mmap"])


def check_pages(t, path, known):
    t.equal("bytes at the end and the size of all mappings", massif.Massif(path).snapshots[-1]["mem_heap_B"],
            known["smaps"][""])


for v in VARIANTS:
    for name, a in (("mmap", ["brk", "mmap"]), ("plain", []), ("threads", ["threads"]), ("stack", ["stack"]))[:None if v == VARIANTS[0] else 1]:
        @test("pages/%s/%s" % (v, name))
        def _(t, v=v, a=a):
            profile = started(t, v, "heap", [*a, "smaps"], ["--pages-as-heap=yes"])
            check_pages(t, output(profile.directory), truth(profile.out))

        @test("pages/%s/%s-attached" % (v, name))
        def _(t, v=v, a=a):
            cwd, known = attached(t, v, ["--pages-as-heap=yes"], [*a, "smaps"])
            check_pages(t, output(cwd), known)


@test("pages/root")
def _(t):
    """Massif's words, no admin bytes, and the initial mappings below a frame without a name."""
    profile = started(t, "gcc-O2-pie", "heap", ["smaps"], ["--pages-as-heap=yes"])
    found = massif.Massif(output(profile.directory))
    tree = found.snapshots[-1]["tree"]
    t.equal("text of the root", tree.text, "(page allocation syscalls) mmap/mremap/brk, --alloc-fns, etc.")
    t.equal("extra bytes", sum(s["mem_heap_extra_B"] for s in found.snapshots), 0)
    t.check(any(c.text == "0x0: ???" for c in tree.children), "no 0x0: ??? at the top")
    t.check(all(s["mem_heap_B"] % 4096 == 0 for s in found.snapshots), "parts of pages")


@test("pages/detach-while-busy")
def _(t):
    """Threads that map and unmap all the time live on when ptmem leaves."""
    cwd = t.subdirectory()
    program = subprocess.Popen([t.target("gcc-O2-pie", "mappings"), "-w", *["threads"] * 40, "-w"], cwd=cwd,
                               env=t.environment(cwd), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    program.stdin.write(b"x")
    program.stdin.flush()
    for n in range(3):
        run = t.run([t.ptmem(), "-p", str(program.pid), "--pages-as-heap=yes", "--duration=0.3",
                     "-o", "massif.%d" % n], cwd=cwd)
        t.equal("status of ptmem (%r)" % run.err, run.status, 0)
    t.equal("standard output", program.communicate(b"x")[0].count(b"map_kept"), 40)
    t.equal("status of the program", program.returncode, 0)


@test("pages/terminated")
def _(t):
    """SIGTERM to ptmem ends the profile; a program under the filter still runs to its end."""
    cwd = t.subdirectory()
    ptmem = subprocess.Popen([t.ptmem(), "--pages-as-heap=yes", "--", t.target("gcc-O2-pie", "mappings"), "-w",
                              "mmap", "smaps"], cwd=cwd, env=t.environment(cwd), stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    ptmem.stdout.readline()
    ptmem.terminate()
    t.wait_until("the profile", lambda: glob.glob(os.path.join(cwd, "massif.out.*[0-9]")))
    t.check(ptmem.poll() is None, "ptmem left a program whose calls it must answer")
    out, _ = ptmem.communicate(b"x")
    t.check(b"smaps" in out, "the program did not end well: %r" % out)
