"""Programs that print their own totals, which ptmem's must equal.

What the C or C++ library allocates by itself before main is known from the `empty` programs under
the oracle; a program's own part is also known from the events, by the module of its call sites.
"""

import os
import subprocess

import harness
import oracle
from harness import Skip, Fail, test
from truth_lib import BOTH, OWN, compare_threads

# MATRIX of tests/targets/Makefile: each level and each kind of linking of either compiler.
VARIANTS = ["gcc-" + k for k in ("O0-pie", "O2-pie", "O2-nopie", "O2-static", "O2-stripped", "O2-fp", "O3-pie", "O3-staticpie")]
VARIANTS += ["clang-" + k for k in ("O0-nopie", "O0-staticpie", "O2-pie", "O2-static", "O2-stripped", "O2-fp", "O3-nopie")]


def is_linked(variant):
    """Allocators call themselves during initialization; only the program's own sites are compared."""
    return variant in ("linked-jemalloc", "linked-tcmalloc_minimal", "linked-mimalloc")


def startup(t, variant, program):
    """What the libraries do before main and after it, in a program that does nothing: (counts in main, counts at the
    end), or None where nothing comes from the libraries."""
    env = {"LD_PRELOAD": t.oracle_library()}
    if "static" in variant and not variant.startswith("musl"):
        empty, env = t.target(variant, "wrapped-empty"), {}
    elif program.startswith("cxx"):
        empty = t.target("gcc-O2-pie", "empty_cxx")
    else:
        return None
    cwd = t.subdirectory()
    run = subprocess.Popen([empty, "-w"], cwd=cwd, env=t.environment(cwd, **env),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    t.equal("first word of the empty program", run.stdout.readline(), b"ready\n")
    (in_main,), = oracle.read_pages(cwd).values()
    run.communicate(b"x")
    t.equal("status of the empty program", run.returncode, 0)
    (at_end,), = oracle.read_pages(cwd).values()
    return in_main.all, at_end.all


def expected(t, profile, variant, program):
    truth = t.truth(profile.directory)
    library = startup(t, variant, program)
    if not library:
        return truth
    in_main, at_end = library
    both = harness.add(truth, at_end)
    if both["peak"] is not None:
        both["peak"] = max(in_main["peak"], in_main["live"] + truth["peak"])
    return both


def check_messages(t, profile):
    t.equal("status", profile.status, 0)
    t.check(profile.err == b"", "standard error: %r" % profile.err[:300])


def compare(t, variant, program, args=(), env=None):
    profile = t.profile([t.target(variant, program), *args], options=["--events=events"], env=env)
    check_messages(t, profile)
    stats = profile.only_stats()
    if not is_linked(variant):
        t.counts("ptmem and the truth", stats, expected(t, profile, variant, program))
    found = profile.events(program)
    t.counts("ptmem and its events", stats, found.all)
    t.equal("blocks replaced by others at their address", stats["replaced"], 0)
    t.check(found.is_complete, "the events file has no end")
    t.check(not found.times_go_back, "events out of order")
    if "static" not in variant:
        t.counts("events of the program's own sites and the truth", found.own, t.truth(profile.directory), OWN)
    return profile


def register(variant, program, args=(), suffix=""):
    @test("truth/%s/%s%s" % (variant, program, suffix))
    def _(t):
        compare(t, variant, program, args)


for v in VARIANTS:
    register(v, "mixed")
    register(v, "failures")
for v in BOTH:
    register(v, "mixed", ("7", "20000", "10"), "-long")
    register(v, "empty")
    register(v, "fibers")
    register(v, "selfread")
    register(v, "cxx_containers")
for v in ("musl-O2-pie", "musl-O2-static"):
    register(v, "mixed")
    register(v, "failures")
NO_VALLOC = ("1", "2000", "40", "no-valloc")
for v in ("linked-jemalloc", "linked-tcmalloc_minimal", "linked-mimalloc", "linked-jemalloc-static"):
    register(v, "failures")
    register(v, "mixed", NO_VALLOC)


# ---- by call path ----


def join_frames(names):
    """Names from main on, without the inlined wrappers of targets/truth.h."""
    names = [n for n in names if not n.startswith("t_")]
    return tuple(names[names.index("main"):]) if "main" in names else tuple(names)


def has_path(pattern, path):
    """main>...>f matches any frames in the gap."""
    if "..." not in pattern:
        return pattern == path
    gap = pattern.index("...")
    tail = pattern[gap + 1:]
    return path[:gap] == pattern[:gap] and len(path) >= gap + len(tail) and path[-len(tail):] == tail


def check_paths(t, variant, program, options=()):
    profile = t.profile([t.target(variant, program)],
                        options=["--threshold=0", "--depth=200", *options])
    check_messages(t, profile)
    peak = profile.only_massif().peak()
    tree = peak["tree"]
    want = t.true_paths(profile.directory)
    truth = expected(t, profile, variant, program)
    if not is_linked(variant):
        t.equal("bytes at the peak", tree.bytes, truth["peak"])
    found = {join_frames(p): n for p, n in tree.paths().items()}
    for pattern, size in want.items():
        got = sum(n for p, n in found.items() if has_path(pattern, p))
        if got != size:
            raise Fail("path %s: %d bytes, not %d; there are %s" %
                       (">".join(pattern), got, size, sorted(">".join(p[-6:]) for p in found)))


def register_paths(variant, program):
    @test("paths/%s/%s" % (variant, program))
    def _(t):
        check_paths(t, variant, program)


for v in VARIANTS:
    if not v.endswith("stripped"):
        register_paths(v, "paths")
        register_paths(v, "stacks")
for v in ("musl-O2-pie", "musl-O2-static", "linked-jemalloc", "linked-tcmalloc_minimal", "linked-mimalloc"):
    register_paths(v, "paths")


def register_stripped(variant, program):
    @test("paths/%s/%s" % (variant, program))
    def _(t):
        """Without names the shape of the tree stays: bytes by path of addresses."""
        named = t.profile([t.target(variant.replace("stripped", "pie"), program)],
                          options=["--threshold=0", "--depth=200"])
        bare = t.profile([t.target(variant, program)], options=["--threshold=0", "--depth=200"])

        def shape(profile):
            tree = profile.only_massif().peak()["tree"]
            return sorted(tree.paths(lambda node: node.address).values())

        t.equal("bytes by path", shape(bare), shape(named))


for v in ("gcc-O2-stripped", "clang-O2-stripped"):
    register_stripped(v, "paths")


# ---- threads: only the order varies ----


# of each that another thread allocates meanwhile: more than the ring has room for, if that is used
BLOCKS = "1000" if "--probes=break" in harness.MORE_OPTIONS else "7000"


def register_suspended(variant):
    @test("threads/%s/suspended" % variant, limit=120)
    def _(t):
        """Threads are stopped anywhere, also while they write a record, and another one goes on for long."""
        compare_threads(t, variant, "suspend", ("10", BLOCKS), options=["--ring=64K"])


def register_threads(variant, name, program, args, status=0, out=b""):
    @test("threads/%s/%s" % (variant, name), limit=120)
    def _(t):
        compare_threads(t, variant, program, args, status, out)


def register_alive(variant):
    @test("threads/%s/alive-1000" % variant, limit=120)
    def _(t):
        """All threads use pads, although they were created after the promotion."""
        stats = compare_threads(t, variant, "threads_many", ("alive", "1000"))
        if not harness.MORE_OPTIONS:
            stops = stats["breakpoint stops"] - stats["stops at a full ring"]
            t.check(stops < 10000, "breakpoint stops: %d" % stops)


def register_sigtrap_limit(variant):
    @test("threads/%s/sigtrap-ignored" % variant)
    def _(t):
        """A breakpoint hit with SIGTRAP ignored, or it alone blocked, makes the kernel forget that, and
        nothing tells the tracer what it had been (ptmem.1, CAVEATS). Calls that pads serve are not
        touched: so this may pass, and its failure is a known limit, not news."""
        profile = t.profile([t.target(variant, "sigmask"), "trap"])
        if profile.status == 90:
            raise Skip("a known limit: the kernel resets an ignored SIGTRAP at a breakpoint")
        t.equal("status", profile.status, 0)


register_suspended(BOTH[0])
register_alive(BOTH[0])
register_threads(BOTH[0], "quick-1000", "threads_many", ("quick", "1000"))
register_threads(BOTH[0], "leader-exits", "leader", (), status=7)
register_threads(BOTH[0], "sigmask", "sigmask", (), out=b"OK\n")
register_sigtrap_limit(BOTH[0])
register_threads(BOTH[0], "protected", "unmapper", ("mprotect",))
register_threads(BOTH[0], "unmapped-by-another", "unmapper", ("munmap", "3", "go", "1000"))
for v in BOTH:  # what differs where the program has a fixed address
    register_threads(v, "cross-free", "threads", ())
    register_threads(v, "two", "threads", ("2", "5000"))
    # the memory that pads share with ptmem is among what this program takes away
    register_threads(v, "unmapped", "unmapper", ("munmap",))
for v in ("musl-O2-pie", "linked-jemalloc", "linked-mimalloc", "linked-tcmalloc_minimal"):
    register_threads(v, "cross-free", "threads", ())


DEEP = """
#include <stdlib.h>
static int go(int depth)
{
	volatile char frame[100];
	frame[depth % 100] = 1;
	if (depth == 0)
		for (int i = 0; i < 300; i++) {
			void *volatile p = malloc(10 + i);
			free(p);
		}
	return depth == 0 ? 1 : go(depth - 1) + frame[depth % 100];
}
int main(void)
{
	return go(9000) == 0;
}
"""


def register_deep(mode):
    @test("truth/very-deep/" + mode)
    def _(t):
        """Deeper than a pad's cache of frames and than one copy of the stack: all are complete."""
        program = os.path.join(t.directory, "deep")
        t.equal("compiler", t.run([t.program("gcc"), "-O1", "-o", program, t.file("deep.c", DEEP)]).status, 0)
        stats = t.profile([program], options=["--depth=200", "--probes=" + mode]).only_stats()
        t.equal("allocations", (stats["allocations"], stats["bytes"]), (300, sum(10 + i for i in range(300))))
        t.equal("complete stacks", stats["complete stacks"], 300)
        walked = stats["frames"] // 9000  # stacks that ptmem itself walked; pads have deep caches
        t.check(walked >= 300 if mode == "break" else 1 <= walked < 10, "frames: %d" % stats["frames"])


register_deep("break")
register_deep("jump")


# ---- libraries that are loaded and unloaded, C++ ----


@test("truth/dlopen")
def dlopen(t):
    """Two libraries alternate at the same address."""
    check_libraries(t, ("libdl_a.so", "libdl_b.so"), ())


@test("truth/dlopen-own-malloc")
def dlopen_own(t):
    """One of them has its own malloc, which is watched as soon as it is loaded."""
    check_libraries(t, ("libdl_a.so", "libdl_own.so"), ("own",))


def check_libraries(t, names, args):
    lib = os.path.join(harness.TARGETS, "lib")
    profile = t.profile([t.target("gcc-O2-pie", "dl"), lib, *args], options=["--events=events"])
    check_messages(t, profile)
    stats = profile.only_stats()
    truth = t.truth(profile.directory)
    t.counts("ptmem and its events", stats, profile.events().all)
    own = [profile.events(name).own for name in names]
    for key in ("allocations", "frees", "bytes", "live", "blocks"):
        t.equal(key + " of the libraries", own[0][key] + own[1][key], truth[key])
    t.equal("allocations by library", [o["allocations"] for o in own], [240, 240])
    places = [place for all_of_one in profile.events().places.values() for place in all_of_one]
    t.equal("modules, one for each object and place", len(profile.events().places), len(set(places)))
    t.equal("places", len(places), len(set(places)))
    if not args:
        run = t.native([t.target("gcc-O2-pie", "dl"), lib], env={"LD_PRELOAD": t.oracle_library()})
        (page,), = oracle.read_pages(run.cwd).values()
        t.counts("ptmem and the oracle", stats, page.all)


def register_cxx(variant):
    @test("truth/%s/cxx" % variant)
    def _(t):
        profile = t.profile([t.target(variant, "cxx")], options=["--events=events"])
        check_messages(t, profile)
        stats, found = profile.only_stats(), profile.events("cxx")
        t.counts("ptmem and its events", stats, found.all)
        if "static" in variant:
            return  # the C++ runtime's exceptions are not distinguished; see the dynamic ones
        t.counts("events of the program's own sites and the truth", found.own, t.truth(profile.directory), OWN)
        run = t.native([t.target(variant, "cxx")], env={"LD_PRELOAD": t.oracle_library()})
        (page,), = oracle.read_pages(run.cwd).values()
        t.counts("ptmem and the oracle", stats, page.all, harness.COUNTED + ("unknown",))


for v in VARIANTS:
    register_cxx(v)


@test("truth/cxx_user")
def cxx_user(t):
    compare(t, "gcc-O2-pie", "cxx_user")


@test("truth/cxx_user-clang")
def cxx_user_clang(t):
    compare(t, "clang-O0-nopie", "cxx_user")


def register_handler(variant):
    @test("truth/%s/cxx_handler" % variant)
    def _(t):
        profile = t.profile([t.target(variant, "cxx_handler")], options=["--events=events"])
        check_messages(t, profile)
        own = profile.events("cxx_handler").own
        t.counts("events of the program's own sites and the truth", own, t.truth(profile.directory), OWN)


for v in BOTH:
    register_handler(v)


# ---- other allocators by the user's LD_PRELOAD ----

def register_preload(name, program):
    @test("preload/%s/%s" % (name, program))
    def _(t):
        path = harness.allocator(name)
        args = NO_VALLOC if program == "mixed" else ()
        profile = t.profile([t.target("gcc-O2-pie", program), *args], options=["--events=events"],
                            env={"LD_PRELOAD": path})
        check_messages(t, profile)
        found, truth = profile.events(program), t.truth(profile.directory)
        t.counts("ptmem and its events", profile.only_stats(), found.all)
        t.counts("events of the program's own sites and the truth", found.own, truth, OWN)
        t.equal("failed calls", found.all["failed"], truth["failed"])


def register_first_free(probes, variant):
    @test("preload/first-free/%s-%s" % (variant, probes))
    def _(t):
        """The free of glibc 2.43 begins again after it has made a thread's cache: that is one call."""
        profile = t.profile([t.target(variant, "first_free")], options=["--follow-exec=yes", "--probes=" + probes])
        truth, stats = t.truth(profile.directory), profile.stats[-1]
        t.equal("unknown frees, frees", (stats["unknown"], stats["frees"]), (0, truth["frees"]))


for mode in ("break", "auto", "jump"):
    for v in ("testing-glibc", "experimental-glibc"):
        register_first_free(mode, v)


def register_strings(probes):
    @test("preload/strings/" + probes)
    def _(t):
        """mimalloc 3 has strdup and strndup of its own, which do not call malloc: they count once, with the string's size."""
        profile = t.profile([t.target("gcc-O2-pie", "strings")], options=["--events=events", "--probes=" + probes],
                            env={"LD_PRELOAD": harness.allocator("mimalloc-3")})
        check_messages(t, profile)
        found, truth, stats = profile.events("strings"), t.truth(profile.directory), profile.only_stats()
        t.counts("ptmem and its events", stats, found.all)
        t.counts("events of the program's own sites and the truth", found.own, truth, OWN)
        t.equal("unknown frees, functions not watched", (stats["unknown"], stats["unwatched"]), (0, 0))


for mode in ("break", "auto", "jump"):
    register_strings(mode)


for allocator in harness.ALLOCATORS:
    for prog in ("mixed", "failures", "threads", "cxx_containers", "fibers"):
        register_preload(allocator, prog)


def register_cold(mode):
    @test("truth/breakpoints-beside-jumps/" + mode)
    def _(t):
        """Some functions keep breakpoints while others become jumps: nested calls are not counted, and no call
        is taken for the rest of another."""
        for probes in ("break", "auto", "jump"):
            profile = t.profile([t.target("odd", "cold"), mode], ["-v", "--probes=" + probes, "--events=events"])
            t.equal("status (%s)" % profile.err, profile.status, 0)
            t.counts(probes, profile.events("/cold").own, t.truth(profile.directory), OWN)
            stats = profile.only_stats()
            t.equal("blocks that were there twice", stats["replaced"], 0)
            t.equal("functions not watched", stats["unwatched"], 0)
            cold = sum("stays a breakpoint: the function has no room" in m for m in profile.messages)
            t.equal("breakpoints that stay (%s)" % probes, cold > 0, probes != "break")


for cold_mode in ("inner", "outer", "again", "segments"):
    register_cold(cold_mode)


OWN_NAMES = """
#include <jemalloc/jemalloc.h>
#include <stdlib.h>
int main(void)
{
	void *block[1000];
	for (int i = 0; i < 1000; i++)
		block[i] = mallocx((size_t)(100 + i), i % 2 ? MALLOCX_ALIGN(64) : 0);
	block[0] = rallocx(block[0], 5000, 0);
	for (int i = 0; i < 500; i++)
		sdallocx(block[i], i == 0 ? 5000 : (size_t)(100 + i), i % 2 ? MALLOCX_ALIGN(64) : 0);
	for (int i = 500; i < 800; i++)
		dallocx(block[i], 0);
	for (int i = 0; i < 1000; i++)
		sdallocx(malloc(30), 30, 0);
	return 0;
}
"""


@test("truth/jemalloc-own-names")
def jemalloc_own_names(t):
    """mallocx, rallocx, dallocx and sdallocx, alone and mixed with malloc."""
    library = harness.allocator("jemalloc")
    if not os.path.exists("/usr/include/jemalloc/jemalloc.h"):
        raise harness.Skip("no header of jemalloc")
    paths = []
    for name, text in (("own", OWN_NAMES), ("none", "int main(void) { return 0; }\n")):
        paths.append(os.path.join(t.directory, name))
        t.equal("compiler", t.run([t.program("gcc"), "-O1", "-fno-builtin", "-o", paths[-1], t.file(name + ".c", text),
                                   "-Wl,--no-as-needed", library]).status, 0)
    for probes in ("break", "jump"):
        stats, before = (t.profile([p], ["--probes=" + probes]).only_stats() for p in paths)
        made = sum(100 + i for i in range(1000))
        want = {"allocations": 2000, "reallocations": 1, "frees": 1800, "live": sum(100 + i for i in range(800, 1000)),
                "blocks": 200}
        t.counts("with " + probes, {k: stats[k] - before[k] for k in want}, want)
        t.equal("bytes", stats["bytes"] - before["bytes"], made + 4900 + 1000 * 30)
