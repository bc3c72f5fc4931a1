"""--probe: allocators of the program's own (targets/custom.c, custom_cxx.cpp), and malloc's family at addresses of
static programs without symbols."""

import json
import os
import re
import shutil
import subprocess

from harness import Skip, test
from process_lib import Attached

WAYS = ("break", "auto", "jump")
FAMILY = ("malloc", "calloc", "realloc", "reallocarray", "memalign", "posix_memalign", "aligned_alloc", "valloc", "pvalloc", "free")

HEADERS = ("alloc:my_alloc:size=arg2,result=ret", "alloc:my_calloc:size=arg2,count=arg1", "realloc:my_realloc:arg1,size=arg2",
           "alloc:my_store:size=arg2,result=*arg3,ok=ret==0", "free:my_free:arg1", "free:object_free:block=arg1")
POOLS = ("alloc:pool_alloc:pool=arg1,size=arg2", "free:pool_free:arg2,pool=arg1", "reset:pool_reset:arg1", "reset:pool_destroy:arg1")
LIBRARY = ("alloc:deviceMalloc:size=arg2,result=*arg1,ok=ret==0", "alloc:deviceHostAlloc:size=arg2,result=*arg1,ok=ret==0",
           "free:deviceFree:arg1")
CXX = ("alloc:app::Arena::take(unsigned long):size=arg2", "free:_ZN3app5Arena4giveEPv:arg2",
       "alloc:app::Arena::make<double>:size=8,count=arg2")


def profiled(t, *args, **how):
    profile = t.profile(*args, **how)
    profile.said = "\n".join(profile.messages)
    return profile


def probes(texts):
    return ["--probe=" + text for text in texts]


def run(t, program, texts, *args, variant="gcc-O2-pie", options=()):
    cwd = t.subdirectory()
    profile = profiled(t, [t.target(variant, program), *args], ["--events=events", *options, *probes(texts)], cwd=cwd)
    t.equal("status", profile.status, 0)
    stats = profile.only_stats()
    t.equal("unknown frees", stats["unknown"], 0)
    t.equal("differing stacks", stats["differing stacks"], 0)
    t.equal("complete stacks", stats["complete stacks"], stats["stacks"])
    return profile, stats, t.truth(cwd)


for _way in WAYS:
    for _variant in ("gcc-O2-pie", "clang-O0-nopie"):
        @test("custom/headers/%s/%s" % (_way, _variant))
        def _(t, way=_way, variant=_variant):
            n = "300" if way == "break" else "5000"
            _, stats, truth = run(t, "custom", HEADERS, "headers", n, variant=variant, options=["--probes=" + way])
            t.counts("ptmem and the truth", stats, truth)
            # my_store stays a breakpoint: a stop at its start, one at its end, and one for malloc inside
            t.check(way == "break" or stats["breakpoint stops"] < 3 * int(n) + 1000, "%d stops" % stats["breakpoint stops"])

    @test("custom/pools/" + _way)
    def _(t, way=_way):
        leaks = os.path.join(t.subdirectory(), "leaks.json")
        _, stats, truth = run(t, "custom", POOLS, "pools", "300", options=["--probes=" + way, "--leak-check", "--leaks-out=" + leaks])
        t.counts("ptmem and the truth", stats, truth)
        with open(leaks, encoding="utf-8") as file:
            found = json.load(file)
        # its blocks are judged, and it is not: together they are all that is in use
        t.equal("the chunk of the pool that is left", found["outer"], {"bytes": 1 << 16, "blocks": 1})
        t.equal("all bytes", found["bytes"] + found["outer"]["bytes"], stats["live"])

    @test("custom/library/" + _way)
    def _(t, way=_way):
        """Loaded by dlopen, whose own blocks are not in the truth."""
        profile, stats, truth = run(t, "custom", LIBRARY, "library", t.target("lib", "libcustom.so"), "300", options=["--probes=" + way])
        own = profile.events("custom").own
        t.counts("ptmem and the truth", own, truth, keys=("allocations", "bytes"))
        t.equal("failed", stats["failed"], truth["failed"])

    @test("custom/c++/" + _way)
    def _(t, way=_way):
        """An arena that throws: what the runtime allocates for exceptions is in another module."""
        profile, stats, truth = run(t, "custom_cxx", CXX, "100", options=["--probes=" + way])
        t.counts("ptmem and the truth", profile.events("custom_cxx").own, truth, keys=("allocations", "bytes"))
        t.equal("failed", stats["failed"], truth["failed"])
        t.equal("exceptions freed, and the arena's blocks", stats["frees"], truth["frees"] + truth["failed"])


@test("custom/sampled")
def _(t):
    """Interval 1 is everything; a larger one counts calls exactly."""
    _, stats, truth = run(t, "custom", HEADERS, "headers", "3000", options=["--heap-sample=1"])
    t.counts("ptmem and the truth", stats, truth)
    for seed in ("1", "2"):
        profile = profiled(t, [t.target("gcc-O2-pie", "custom"), "headers", "3000"],
                           ["--heap-sample=512", "--seed=" + seed, *probes(HEADERS)])
        t.equal("status", profile.status, 0)
        t.equal("unknown frees", profile.only_stats()["unknown"], 0)
        # calls, also failed ones and my_realloc's; those of free inside object_free are not calls of the program
        made = sum(truth[k] for k in ("allocations", "reallocations", "failed"))
        calls = ("{:,} of ".format(made), " 0 by the C library's realloc, and ", "and {:,} calls of free".format(truth["frees"] - 3000))
        t.check(all(c in profile.said for c in calls), "not %s: %s" % (calls, profile.said))
    # of the shell, which ends last, there is one realloc only
    profile = profiled(t, ["/bin/sh", "-c", t.target("gcc-O2-pie", "custom") + " headers 100; :"],
                       ["--trace-children=yes", "--heap-sample=512", *probes(HEADERS)])
    t.equal("reallocs", re.findall(r" by (.*realloc), and", profile.said), ["the C library's realloc", "realloc"])


@test("custom/file")
def _(t):
    cwd = t.subdirectory()
    with open(os.path.join(cwd, "list"), "w", encoding="ascii") as file:
        file.write("# the allocator\n\n  %s  \n" % "\n".join(HEADERS))
    profile = profiled(t, [t.target("gcc-O2-pie", "custom"), "headers", "100"], ["--probe=@list"], cwd=cwd)
    t.counts("ptmem and the truth", profile.only_stats(), t.truth(cwd))
    with open(os.path.join(cwd, "list"), "a", encoding="ascii") as file:
        file.write("free:my_free\n")
    profile = profiled(t, ["/bin/true"], ["--probe=@list"], cwd=cwd)
    t.check("list:9: free:my_free: a probe is" in profile.said, profile.said)
    t.check(profile.status != 0, "it ran")


def profile_attached(t, command, options, **how):
    """The profile of a program that prints OK, and goes on after a line; ptmem comes between."""
    target = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, **how)
    try:
        t.equal("its line", target.stdout.readline(), b"OK\n")
        ptmem = Attached(t, target.pid, options).wait_attached()
        target.stdin.write(b"\n")
        target.stdin.close()
        profile = ptmem.ended()
        t.equal("status", target.wait(timeout=200), 0)
    finally:
        target.kill()
        target.wait()
    return profile


@test("custom/attached")
def _(t):
    cwd = t.subdirectory()
    profile = profile_attached(t, [t.target("gcc-O2-pie", "custom"), "attached", "300"], probes(HEADERS), cwd=cwd,
                               env=t.environment(cwd, TRUTH=os.path.join(cwd, "truth")))
    t.counts("ptmem and the truth", profile.only_stats(), t.truth(cwd), keys=("allocations", "reallocations", "frees", "bytes", "failed"))


@test("custom/errors")
def _(t):
    for text, message in (
            ("alloc:f:size=arg7", "size= is arg1 to arg6, or a number of bytes"),
            ("alloc:f:result=ret", "how many bytes are allocated?"),
            ("alloc:f:size=arg1,ok=ret=0", "ok= is a test of the result"),
            ("alloc:f:size=arg1,result=arg2", "result= is ret, or *arg1"),
            ("free:f:size=arg1", "free: has block= and pool="),
            ("reset:f:", "which pool does it reset?"),
            ("realloc:f:size=arg1", "which argument is the block?"),
            ("take:f:arg1", "a probe is alloc:FUNCTION"),
            ("malloc=my_malloc", "after = comes the address"),
            ("mmap=0x1000", "a probe is alloc:FUNCTION"),
            ("@/nonexistent", "cannot read /nonexistent")):
        profile = profiled(t, [t.target("gcc-O2-pie", "custom"), "headers", "1"], ["--probe=" + text])
        t.check(message in profile.said and profile.status != 0 and not profile.out, "%s: %s" % (text, profile.said))


@test("custom/unused")
def _(t):
    profile = profiled(t, [t.target("gcc-O2-pie", "custom"), "headers", "20"],
                        probes(("alloc:missing_alloc:size=arg1", "reset:pool_reset:arg1", "free:my_free:arg1")))
    t.check("--probe=alloc:missing_alloc:size=arg1: no function of this name was found" in profile.said, profile.said)
    t.check("--probe=reset:pool_reset:arg1: it was never called" in profile.said, profile.said)
    t.check("my_free" not in profile.said, profile.said)


# ---- addresses ----

def stripped(t, variant, name="mixed"):
    """A copy of a program without symbols, its path, and the addresses that they had."""
    if not shutil.which("strip") or not shutil.which("nm"):
        raise Skip("no binutils")
    program, cwd = t.target(variant, name), t.subdirectory()
    copy = os.path.join(cwd, name)
    subprocess.run(["strip", "-s", "-o", copy, program], check=True)
    addresses = {}
    for line in subprocess.run(["nm", program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        words = line.split()
        if len(words) == 3 and words[1] in "TtWi":
            addresses.setdefault(words[2], "0x" + words[0])
    return copy, cwd, addresses


def at(addresses, **other):
    found = {name: addresses[name] for name in FAMILY if name in addresses}
    return ["--probe=%s=%s" % item for item in dict(found, **other).items()]


for _variant in ("gcc-O2-static", "gcc-O3-staticpie", "clang-O2-static", "musl-O2-static"):
    @test("custom/addresses/" + _variant)
    def _(t, variant=_variant):
        copy, cwd, addresses = stripped(t, variant)
        stats = t.profile([copy], at(addresses), cwd=cwd).only_stats()
        # what the C library allocates for itself is in both
        whole = t.profile([t.target(variant, "mixed")]).only_stats()
        t.counts("without symbols and with them", stats, whole, keys=("allocations", "reallocations", "frees", "blocks"))
        t.counts("ptmem and the truth", stats, t.truth(cwd), keys=("reallocations", "frees"))

    @test("custom/wrong-address/" + _variant)
    def _(t, variant=_variant):
        """The program runs as ever, or not at all; there is no profile."""
        copy, cwd, addresses = stripped(t, variant)
        native = t.native([copy], cwd=cwd)
        inside = "%#x" % (int(addresses["malloc"], 16) + 1)
        missing = [o for o in at(addresses) if "align" not in o]
        for options in (at(addresses, free=addresses["strlen"]), at(addresses, malloc=addresses["strlen"]), missing,
                        at(addresses, malloc=inside), at(addresses, malloc="0x10")):
            cwd = t.subdirectory()
            profile = profiled(t, [copy], options, cwd=cwd)
            t.check(profile.status != 0, "%s: %s" % (options, profile.said))
            t.equal("profiles (%s: %s)" % (options, profile.said), [f for f in os.listdir(cwd) if f.startswith("massif")], [])
            t.check("--probe" in profile.said, profile.said)
            t.check(profile.out in (native.out, b""), "it printed %r" % profile.out)


# ---- probes that do not fit their functions ----

@test("custom/no-pointer")
def no_pointer(t):
    """The result is not where the probe says: the program reads nothing there."""
    command = [t.target("gcc-O2-pie", "custom"), "headers", "300"]
    profile = profiled(t, command, ["--probes=jump", "--probe=alloc:my_store:size=arg2,result=*arg2,ok=ret==0"])
    t.same_behaviour(profile, t.native(command))


@test("custom/stack-arguments")
def stack_arguments(t):
    """Such functions are not watched, also behind a jump; the program finds its arguments."""
    for variant in ("gcc-O2-pie", "clang-O0-nopie"):
        names = ("seven_alloc", "list_alloc", "pass_alloc")
        cwd = t.subdirectory()
        profile = profiled(t, [t.target(variant, "seven")], probes("alloc:%s:size=arg1" % n for n in names), cwd=cwd)
        t.equal("status", profile.status, 0)
        t.counts("ptmem and the truth", profile.only_stats(), t.truth(cwd))
        for name in names:
            t.check("%s in " % name in profile.said and "has arguments on the stack" in profile.said, profile.said)


# ---- malloc without symbols and addresses: glibc's, musl's, jemalloc's ----

def has_structure():
    version = os.confstr("CS_GNU_LIBC_VERSION")
    minor = int(version.split(".")[1])
    if not 31 <= minor <= 44:
        raise Skip("malloc's functions are recognized in glibc 2.31 to 2.44, this is " + version)


FOUND_BY_CODE = "malloc, free, calloc and realloc have no names here, and were found by their code (%s's)"

for _variant in ("gcc-O2-static", "gcc-O3-staticpie", "clang-O2-static", "musl-O2-static"):
    for _way in WAYS:
        @test("custom/recognized/%s/%s" % (_variant, _way))
        def _(t, variant=_variant, way=_way):
            """pvalloc counts its pages."""
            has_structure()
            copy, cwd, _ = stripped(t, variant)
            native = t.native([copy], cwd=cwd)
            whole = t.profile([t.target(variant, "mixed")]).only_stats()
            profile = profiled(t, [copy], ["--probes=" + way], cwd=cwd)
            t.same_behaviour(profile, native)
            stats = profile.only_stats()
            t.counts("without symbols and with them", stats, whole, keys=("allocations", "reallocations", "frees", "blocks"))
            t.equal("unknown frees", stats["unknown"], 0)
            if variant == "musl-O2-static":
                t.equal("bytes", stats["bytes"], whole["bytes"])
            else:
                t.equal("complete stacks", stats["complete stacks"], stats["stacks"])
            t.check(FOUND_BY_CODE % variant.split("-")[0].replace("gcc", "glibc").replace("clang", "glibc") in profile.said, profile.said)
            t.check((stats["functions with jumps"] > 0) == (way != "break"), "jumps: %s" % stats)


for _variant in ("linked-jemalloc-static", "musl-O2-static"):
    @test("custom/recognized/%s/threads" % _variant)
    def _(t, variant=_variant):
        """Threads: the program's own counts; glibc's threads allocate, too."""
        copy, cwd, _ = stripped(t, variant, "threads")
        stats, truth = profiled(t, [copy], cwd=cwd).only_stats(), t.truth(cwd)
        t.counts("ptmem and the truth", stats, truth, keys=("reallocations", "failed"))
        t.equal("unknown frees", stats["unknown"], 0)
        if variant.startswith("musl"):
            t.equal("frees", stats["frees"], truth["frees"])


@test("custom/recognized/c++")
def recognized_cxx(t):
    """operator new and delete are not watched, but malloc and free in them."""
    has_structure()
    copy, cwd, _ = stripped(t, "gcc-O2-static", "cxx")
    stats, whole = profiled(t, [copy], cwd=cwd).only_stats(), t.profile([t.target("gcc-O2-static", "cxx")]).only_stats()
    t.counts("without symbols and with them", stats, whole, keys=("allocations", "reallocations", "frees", "blocks"))


@test("custom/recognized/jemalloc-others")
def recognized_jemalloc(t):
    """It uses valloc, which is not found: there is no profile instead of a wrong one."""
    copy, cwd, _ = stripped(t, "linked-jemalloc-static", "mixed")
    profile = profiled(t, [copy], cwd=cwd)
    t.check("no malloc or other allocation function found" in profile.said, profile.said)
    t.check("\"ptmem env %s ...\" profiles that one" % copy in profile.said, profile.said)
    t.check("like that of no malloc which ptmem recognizes (glibc 2.31 to 2.44, musl 1.2, jemalloc 5)" in profile.said, profile.said)


ATTACHED = """
#include <stdio.h>
#include <stdlib.h>
static void *volatile p[2000];
int main(void)
{
	puts("OK");
	fflush(stdout);
	getchar();
	for (int i = 0; i < 2000; i++)
		p[i] = i % 2 ? malloc(i) : calloc(i, 3);
	for (int i = 0; i < 2000; i += 3)
		p[i] = realloc(p[i], 2 * i + 1);
	for (int i = 0; i < 1000; i++)
		free(p[i]);
	return 0;
}
"""


for _compiler in ("gcc", "musl-gcc"):
    @test("custom/recognized/attached/" + _compiler)
    def _(t, compiler=_compiler):
        has_structure()
        if not shutil.which(compiler):
            raise Skip("no " + compiler)
        cwd = t.subdirectory()
        program = os.path.join(cwd, "attached")
        subprocess.run([compiler, "-O1", "-fno-builtin", "-static", "-s", "-x", "c", "-", "-o", program], input=ATTACHED.encode(), check=True)
        stats = profile_attached(t, [program], [], cwd=cwd).only_stats()
        sizes = sum(i if i % 2 else 3 * i for i in range(2000))
        t.equal("allocations", stats["allocations"], 2000)
        t.equal("reallocations", stats["reallocations"], 667)
        t.equal("frees", stats["frees"], 1000)
        t.equal("unknown frees", stats["unknown"], 0)
        t.check(stats["bytes"] >= sizes, "%d bytes" % stats["bytes"])


@test("custom/recognized/other")
def recognized_other(t):
    """A call that contradicts: there is no profile, and the program is not disturbed."""
    has_structure()
    cwd = t.subdirectory()
    copy = os.path.join(cwd, "heads")
    subprocess.run(["strip", "-s", "-o", copy, t.target("gcc-O2-static", "heads")], check=True)
    run = t.run([t.ptmem(), copy], cwd=cwd)
    t.equal("status", run.status, 125)
    t.equal("output", run.out, b"done\n")
    t.check(b"are not those of glibc" in run.err and b"massif.out" not in run.err, "messages: %r" % run.err)
    t.equal("files", [n for n in os.listdir(cwd) if n.startswith("massif")], [])
