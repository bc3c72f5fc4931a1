"""Programs and options of the kind that Massif is tested with, beside Massif: targets/massif_cases.c and
massif_cases_cxx.cpp. What may differ, and why: peer_differences.md.
"""

import os

import confirmed
from harness import Fail, test
from peer_lib import VALGRIND, first_difference, masked, register as register_peer

C, CXX = "massif_cases", "massif_cases_cxx"
GCC, CLANG, GCC0, CLANG2 = "peer-gcc-O2", "peer-clang-O0", "peer-gcc-O0", "peer-clang-O2"
ALL = ["--detailed-freq=1", "--max-snapshots=200"]

# name: (variant, program, case, options)
CASES = {
    "wrappers": (GCC, C, "wrappers", ALL),
    "wrappers-alloc-fn-1": (GCC, C, "wrappers", ["--alloc-fn=a1", *ALL]),
    "wrappers-alloc-fn-2": (CLANG, C, "wrappers", ["--alloc-fn=a1", "--alloc-fn=b1", *ALL]),
    "wrappers-alloc-fn-all": (GCC, C, "wrappers", [*("--alloc-fn=" + f for f in ("a1", "a2", "a3", "a4", "b1", "b2", "c1")), *ALL]),
    "wrappers-alloc-fn-no-first": (GCC, C, "wrappers", ["--alloc-fn=a2", "--alloc-fn=a4", *ALL]),
    "wrappers-prefix": (GCC, C, "wrappers", ["--massif:alloc-fn=a1", "--massif:depth=2"]),
    "swallow-to-main": (GCC, C, "wrappers", [*("--alloc-fn=" + f for f in ("a1", "a2", "a3", "a4", "b1", "b2", "c1", "wrappers", "main")), *ALL]),
    "swallow-everything": (GCC, C, "wrappers", [*("--alloc-fn=" + f for f in ("a1", "a2", "a3", "a4", "b1", "b2", "c1", "wrappers", "main", "(below main)")), *ALL]),
    "swallow-below-main": (CLANG, C, "wrappers", ["--alloc-fn=a1", "--alloc-fn=main", "--show-below-main=yes", *ALL]),
    "recursion-depth-8": (GCC, C, "recursion", ["--depth=8", *ALL]),
    "recursion-depth-8-O0": (CLANG, C, "recursion", ["--depth=8", "--threshold=0"]),
    "recursion-depth-200": (GCC0, C, "recursion", ["--depth=200", *ALL]),
    "recursion-reach": (GCC, C, "recursion", ["--depth=1", "--alloc-fn=recurse", *ALL]),
    "peaks": (GCC, C, "peaks", ["--peak-inaccuracy=0", *ALL]),
    "peaks-inaccuracy-10": (GCC, C, "peaks", ["--peak-inaccuracy=10", "--detailed-freq=1000000"]),
    "peaks-inaccuracy-negative": (CLANG, C, "peaks", ["--peak-inaccuracy=-10", "--detailed-freq=1000000"]),
    "culling-10": (GCC, C, "waves", ["--max-snapshots=10"]),
    "culling-10-detailed": (CLANG, C, "waves", ["--max-snapshots=10", "--detailed-freq=1", "--threshold=0"]),
    "culling-13": (GCC, C, "waves", ["--max-snapshots=13", "--detailed-freq=2", "--peak-inaccuracy=0"]),
    "culling-1000": (GCC, C, "waves", ["--max-snapshots=1000"]),
    "inlined": (GCC, C, "inlined", ALL),
    "inlined-clang": (CLANG2, C, "inlined", ALL),
    "inlined-depth-1": (CLANG, C, "inlined", ["--depth=1", *ALL]),
    "inlined-no": (GCC, C, "inlined", ["--read-inline-info=no", *ALL]),
    "inlined-no-O0": (GCC0, C, "inlined", ["--read-inline-info=no", "--depth=4"]),
    "inlined-fullpath": (GCC, C, "inlined", ["--fullpath-after=", *ALL]),
    "fullpath-after": (GCC, C, "wrappers", ["--fullpath-after=nowhere", "--fullpath-after=tests/", *ALL]),
    "zero": (GCC, C, "zero", ALL),
    "zero-admin-0": (GCC, C, "zero", ["--heap-admin=0", *ALL]),
    "zero-threshold-0": (CLANG, C, "zero", ["--threshold=0", *ALL]),
    "large": (GCC, C, "large", ALL),
    "large-admin-1024": (CLANG, C, "large", ["--heap-admin=1024"]),
    "long-time": (GCC, C, "long_time", []),
    "long-time-20": (CLANG, C, "long_time", ["--max-snapshots=20", "--detailed-freq=3"]),
    "huge": (GCC, C, "huge", ALL),
    "shares-0": (GCC, C, "shares", ["--threshold=0", *ALL]),
    "shares-1": (GCC, C, "shares", ["--threshold=1", *ALL]),
    "shares-5": (GCC, C, "shares", ["--threshold=5", *ALL]),
    "shares-10": (CLANG, C, "shares", ["--threshold=10", *ALL]),
    "shares-0.999": (GCC, C, "shares", ["--threshold=.999", *ALL]),
    "shares-100": (GCC, C, "shares", ["--threshold=100", *ALL]),
    "ignored-realloc": (GCC, C, "ignored", ["--ignore-fn=quiet", "--ignore-fn=quiet_resize", *ALL]),
    "ignored-all": (CLANG, C, "ignored", ["--ignore-fn=quiet", "--ignore-fn=quiet_resize", "--ignore-fn=a1", *ALL]),
    "ignored-caller-of-alloc-fn": (GCC, C, "wrappers", ["--alloc-fn=a1", "--ignore-fn=a2", *ALL]),
    "ignored-not-first": (GCC, C, "wrappers", ["--ignore-fn=wrappers", *ALL]),
    "sizes": (GCC, C, "sizes", ALL),
    "resizes": (GCC0, C, "resizes", ALL),
    "sizes-O0": (GCC0, C, "sizes", ["--threshold=0", "--detailed-freq=2"]),
    "around-main": (GCC, C, "around_main", ALL),
    "around-main-shown": (GCC, C, "around_main", ["--show-below-main=yes", *ALL]),
    "below-main-shown": (GCC, C, "recursion", ["--show-below-main=yes", *ALL]),
    "heap-no": (GCC, C, "waves", ["--heap=no"]),
    "heap-no-detailed": (CLANG, C, "wrappers", ["--heap=no", "--detailed-freq=1"]),
    "trace-malloc-no": (GCC, C, "wrappers", ["--trace-malloc=no", "--num-callers=3"]),
    "plain-new": (GCC, CXX, "plain_new", ALL),
    "plain-new-clang": (CLANG, CXX, "plain_new", ["--threshold=0", *ALL]),
    "nothrow-new": (GCC, CXX, "nothrow_new", ALL),
    "nothrow-new-clang": (CLANG, CXX, "nothrow_new", ["--threshold=0", *ALL]),
    "aligned-new": (GCC, CXX, "aligned_new", ["--threshold=0", *ALL]),
    "aligned-new-clang": (CLANG, CXX, "aligned_new", ["--threshold=0", *ALL]),
    "overloaded-new": (GCC, CXX, "overload", ["--threshold=0", *ALL]),
    "overloaded-new-clang": (CLANG, CXX, "overload", ["--threshold=0", *ALL]),
    "overloaded-new-alloc-fn": (GCC, CXX, "overload", ["--alloc-fn=(anonymous namespace)::overloaded::operator new(unsigned long)", "--threshold=0", *ALL]),
    "templates": (GCC, CXX, "templates", ["--threshold=0", *ALL]),
    "templates-depth-40": (CLANG, CXX, "templates", ["--depth=40", "--threshold=0", *ALL]),
    "long-names": (GCC, CXX, "long_names", ["--threshold=0", *ALL]),
    "long-names-mangled": (CLANG, CXX, "long_names", ["--demangle=no", "--threshold=0", *ALL]),
    "lambdas": (GCC, CXX, "lambdas", ["--threshold=0", *ALL]),
    "lambdas-clang": (CLANG, CXX, "lambdas", ["--threshold=0", *ALL]),
    "names-demangled": (GCC, CXX, "names", ["--ignore-fn=(anonymous namespace)::named(int)", "--threshold=0", *ALL]),
    "names-mangled": (GCC, CXX, "names", ["--demangle=no", "--ignore-fn=_ZN12_GLOBAL__N_15namedEi", "--threshold=0", *ALL]),
    "names-mangled-not-so": (GCC, CXX, "names", ["--ignore-fn=_ZN12_GLOBAL__N_15namedEi", "--threshold=0", *ALL]),
    "names-plain": (CLANG, CXX, "names", ["--ignore-fn=plain_named", "--threshold=0", *ALL]),
    "names-loader": (GCC, CXX, "names", ["--ignore-fn=call_init", *ALL]),
    "containers": (GCC, CXX, "containers", ["--threshold=0"]),
    "containers-depth-3": (CLANG, CXX, "containers", ["--threshold=0", "--depth=3", "--max-snapshots=50"]),
}


# What scripts pass besides, and what changes nothing
CASES.update({
    "alignment-16": (GCC, C, "sizes", ["--alignment=16", "--redzone-size=64", *ALL]),
    "alignment-last": (CLANG, C, "sizes", ["--alignment=256", "--alignment=16", *ALL]),
    "core": (GCC, C, "recursion", ["--num-callers=500", "--trace-malloc=no", "--trace-children=no", "--child-silent-after-fork=yes", *ALL]),
    "core-others": (CLANG, C, "recursion", ["--num-callers=1", "--vgdb=no", "--command-line-only=yes", "--track-fds=no", "--memcheck:leak-check=full", *ALL]),
    "last-wins": (GCC, C, "recursion", ["--depth=2", "--depth=7", "--threshold=50", "--threshold=0", "--demangle=no", "--demangle=yes", *ALL]),
    "switched-off": (GCC, C, "waves", ["--pages-as-heap=no", "--stacks=no", "--heap=yes", "--xtree-memory=none"]),
    "switched-off-again": (CLANG, C, "waves", ["--stacks=yes", "--stacks=no", "--pages-as-heap=yes", "--pages-as-heap=no", "--heap=no", "--heap=yes"]),
    "pages-without-heap": (GCC, C, "waves", ["--heap=no", "--pages-as-heap=yes"]),
    "pages-without-heap-detailed": (CLANG, C, "waves", ["--pages-as-heap=yes", "--heap=no", *ALL]),
    "fullpath-nowhere": (CLANG, C, "inlined", ["--fullpath-after=no/such/directory/", *ALL]),
})

FUNCTIONS, SIGNATURES = "massif_cases_functions", "massif_cases_signatures"
CASES.update({
    "reach-1": (GCC, FUNCTIONS, "reach", ["--depth=1", "--alloc-fn=chain", "--threshold=0", *ALL]),
    "reach-3": (CLANG, FUNCTIONS, "reach", ["--depth=3", "--alloc-fn=chain", "--threshold=0", *ALL]),
    "reach-ignore": (GCC, FUNCTIONS, "reach", ["--depth=1", "--alloc-fn=chain", "--ignore-fn=reach", "--threshold=0", *ALL]),
    "mains": (GCC, FUNCTIONS, "mains", ["--threshold=0", *ALL]),
    "mains-shown": (CLANG, FUNCTIONS, "mains", ["--threshold=0", "--show-below-main=yes", *ALL]),
    "mains-alloc-fn": (GCC, FUNCTIONS, "mains", ["--threshold=0", "--alloc-fn=main", "--alloc-fn=one", "--alloc-fn=mains", *ALL]),
    "mains-ignored": (GCC, FUNCTIONS, "mains", ["--threshold=0", "--ignore-fn=mains", "--alloc-fn=one", *ALL]),
    "mains-depth-2": (CLANG, FUNCTIONS, "mains", ["--threshold=0", "--depth=2", *ALL]),
    "mains-below-ignored": (GCC, FUNCTIONS, "mains", ["--ignore-fn=(below main)", *("--alloc-fn=" + f for f in ("main", "mains", "one")), "--threshold=0", *ALL]),
    "mains-below-shown": (GCC, FUNCTIONS, "mains", [*("--alloc-fn=" + f for f in ("main", "mains", "one", "__libc_start_call_main")), "--show-below-main=yes", "--threshold=0", *ALL]),
    "defaults": (GCC, FUNCTIONS, "defaults", ["--threshold=0", *ALL]),
    "defaults-alloc-fn": (CLANG, FUNCTIONS, "defaults", ["--threshold=0", "--alloc-fn=not_by_default", *ALL]),
    "defaults-ignored": (GCC, FUNCTIONS, "defaults", ["--threshold=0", "--ignore-fn=valloc", "--ignore-fn=not_by_default", "--ignore-fn=malloc", *ALL]),
    "aliases": (GCC, FUNCTIONS, "aliases", ["--threshold=0", *ALL]),
    "aliases-clang": (CLANG, FUNCTIONS, "aliases", ["--threshold=0", *ALL]),
    "aliases-alloc-fn": (GCC0, FUNCTIONS, "aliases", ["--alloc-fn=short_one", "--alloc-fn=same_length_b", "--threshold=0", *ALL]),
    "patterns-are-none": (GCC, FUNCTIONS, "reallocs", ["--alloc-fn=", "--alloc-fn=o*", "--alloc-fn=One", "--alloc-fn=one ", "--ignore-fn=", "--ignore-fn=*", "--ignore-fn=on", "--threshold=0", *ALL]),
    "reallocs": (CLANG, FUNCTIONS, "reallocs", ["--threshold=0", *ALL]),
    "reallocs-ignored-callers": (GCC, FUNCTIONS, "reallocs", ["--alloc-fn=resize", "--alloc-fn=resize_too", "--ignore-fn=reallocs", "--threshold=0", *ALL]),
    "reallocs-alloc-fns": (GCC0, FUNCTIONS, "reallocs", ["--alloc-fn=resize", "--alloc-fn=one", "--ignore-fn=main", "--threshold=0", *ALL]),
    "signatures": (GCC, SIGNATURES, "", ["--threshold=0", *ALL]),
    "signatures-clang": (CLANG, SIGNATURES, "", ["--threshold=0", *ALL]),
    "signatures-mangled": (GCC0, SIGNATURES, "", ["--threshold=0", "--demangle=no", *ALL]),
    "signatures-fns": (GCC0, SIGNATURES, "", ["--alloc-fn=char** outer::make<char*>(unsigned long)", "--ignore-fn=outer::maker::fixed(unsigned long)", "--alloc-fn=plain_c", "--ignore-fn=outer::v1::versioned(unsigned long)", "--threshold=0", *ALL]),
    "signatures-not-these": (CLANG, SIGNATURES, "", ["--alloc-fn=outer::make<char*>(unsigned long)", "--ignore-fn=outer::maker::fixed", "--alloc-fn=plain_c(unsigned long)", "--threshold=0", *ALL]),
})


def register(name, variant, program, case, options):
    register_peer("case-" + name, lambda t: [t.target(variant, program)], options, {"CASE": case})


REQUESTS = "massif_cases_requests"
for how, v in (("", GCC), ("-clang-O0", CLANG), ("-gcc-O0", GCC0)):
    for c in ("custom", "covering", "inlined", "others"):
        CASES["requests-" + c + how] = (v, REQUESTS, c, ["--heap-admin=16", "--threshold=0", *ALL])
CASES["requests-cxx"] = (GCC, "massif_cases_requests_cxx", "", ["--heap-admin=16", "--threshold=0", *ALL])
CASES["requests-cxx-clang"] = (CLANG2, "massif_cases_requests_cxx", "", ["--threshold=0", *ALL])
CASES.update({
    "requests-plain": (GCC, REQUESTS, "custom", []),
    "requests-alloc-fn": (GCC, REQUESTS, "custom", ["--alloc-fn=custom_alloc", "--heap-admin=16", *ALL]),
    "requests-ignore-fn": (CLANG, REQUESTS, "custom", ["--ignore-fn=custom_resize", *ALL]),
    "requests-ignored-covering": (GCC, REQUESTS, "covering", ["--ignore-fn=covering", *ALL]),
    "requests-heap-no": (GCC, REQUESTS, "covering", ["--heap=no"]),
    "requests-depth": (CLANG, REQUESTS, "custom", ["--depth=1", "--threshold=0", *ALL]),
    "requests-alignment": (GCC, REQUESTS, "custom", ["--alignment=64", *ALL]),
})

for case_name, (v, p, c, o) in CASES.items():
    register(case_name, v, p, c, o)


for kind in ("pie", "no-pie"):
    register_peer("ties-" + kind, lambda t, k=kind: [t.target("lib", "ties-" + k)], ["--threshold=0", *ALL])
ENTRY = {"plain": [], "shown": ["--show-below-main=yes"], "start-ignored": ["--ignore-fn=_start", "--alloc-fn=work"],
         "ignored": ["--ignore-fn=(below main)", "--alloc-fn=work"],
         "swallowed": ["--alloc-fn=(below main)", "--alloc-fn=work"],
         "swallowed-shown": ["--alloc-fn=_start", "--alloc-fn=work", "--show-below-main=yes"]}
for entry_name, entry_options in ENTRY.items():
    register_peer("entry-" + entry_name, lambda t: [t.target("odd", "entry")], [*entry_options, "--threshold=0", *ALL])
for mangling in ("v0", "legacy"):
    register_peer("rust-" + mangling, lambda t, m=mangling: [t.target("rust", m)], ["--threshold=0", *ALL])
register_peer("rust-mangled", lambda t: [t.target("rust", "v0")], ["--threshold=0", "--demangle=no", *ALL])

# Names as compilers of C++ and Rust make them, or might; libiberty decides, there as here
LABELS = """
_ZN4core3ptr13drop_in_place17h0123456789abcdefE _ZN3foo3bar17h05af221e174051e9E
_ZN88_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..iter..traits..collect..Extend$LT$T$GT$$GT$6extend17h0123456789abcdefE
_ZN68_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..drop..Drop$GT$4drop17h05af221e174051e9E
_ZN3foo28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE _ZN2ab17hzzzzzzzzzzzzzzzzE
_ZN3foo3barE17h05af221e174051e9E _ZN3foo3bar17h05af221e174051e9E.llvm.123 _ZN3foo3bar17h05af221e174051e9Ev
_RNvNtCs1234_7mycrate3foo3bar _RINvNtC3std3mem8align_ofdE _RNvMs_NtCs4fqI2P2rA04_5alloc3vecINtB4_3VeceE4push
_RNCNvC3foo3bar0 _RNvXCs_5cratexNtB2_3TraiT6method _RNvC3foo3bar.llvm.99 _RNvC6_123foo3bar _R _RNv
_ZN3fooC1Ev _ZN3fooD0Ev _ZThn16_N3foo3barEv _ZTv0_n24_N3foo3barEv _ZGVZ3foovE1x _Z3fooIJiiiEEvDpT_
_ZNSt6vectorIiSaIiEE9push_backEOi _ZZ4mainENKUlvE_clEv _ZZ4mainENKUlT_E0_clIiEEDaS_ _Z1fIiEDTcl1gfp_EET_
_Z3barILb1EEvv _ZN12_GLOBAL__N_13fooEv _ZNK3foocvbEv _ZN3fooaSERKS_ _Z3fooPFivE _ZN1AIXadL_Z1fvEEE1gEv
_Z1fv.cold _Z1fv.isra.0 _Z1fv.part.3.constprop.1 _ZN3foo3barB5cxx11Ev _Zbogus _Z _ZN ___ZN3fooEv __Z3foov foo__Fi
_ZN5boost3fooEv.llvm.1234 _Z3fooDu _ZW3FooN1A1fEv _Z1fITk1CiEvv _Z3fooU8__vectorf _Z1fu3Foo _ZN1SclEv
_ZNKR1S1fEv _ZNO1S1fEv _ZL5localv _Z1fDpi _Z1fPK1AIXtl1BLi1EEEE _Z1fIL_Z1gvEEvv _QQ x$fortran _Z1fv$suffix
main.cold.1 main.1 GLOBAL__sub_I_x _GLOBAL__sub_I__Z3foov _GLOBAL__I_a
""".split()
LABELS += ["_ZN" + "10n123456789" * n + "3fooEv" for n in (80, 84, 85, 86, 200)]
LABELS += ["_Z%d%s" % (len(name), name) + "i" for name in ("b" * 900, "b" * 1017, "b" * 1018, "b" * 1019, "b" * 2500)]
LABELS += ["_Z1fI" + "P" * n + "iEvv" for n in (500, 1000, 2500)] + ["a" * 2500, "_R" + "NvC3foo%d%s" % (2500, "c" * 2500)]


def labelled(t):
    """A program of functions of these names, each with a malloc."""
    lines = ["#include <stdlib.h>", "void *volatile sink;", "#define F __attribute__((noinline, noipa)) void"]
    for i, name in enumerate(LABELS):
        lines.append('F f%d(void) __asm__("%s"); F f%d(void) { sink = malloc(%d); }' % (i, name, i, 992 + 32 * i))
    lines.append("int main(void) { %s return 0; }" % "".join("f%d(); " % i for i in range(len(LABELS))))
    program = os.path.join(t.directory, "labels")
    compiled = t.run([t.program("gcc"), "-O1", "-o", program, t.file("labels.c", "\n".join(lines) + "\n")])
    t.equal("compiler (%s)" % compiled.err.decode()[:300], compiled.status, 0)
    return [program]


for label_name, label_options in (("demangled", []), ("mangled", ["--demangle=no"]), ("ignored", [
        "--ignore-fn=foo::bar", "--ignore-fn=" + "a" * 2500, "--alloc-fn=" + "b" * 1018 + "(int)",
        "--alloc-fn=_Z1018" + "b" * 1018 + "i", "--alloc-fn=main::{lambda()#1}::operator()() const"])):
    register_peer("labels-" + label_name, labelled, [*label_options, "--threshold=0", *ALL])


@test("peer/case-names-inlined", limit=120)
def _(t):
    """An inlined function is ignored as Valgrind ignores it where it is not inlined."""
    options = ["--ignore-fn=maybe_inlined", "--threshold=0", "--detailed-freq=1"]
    mangled = ["--demangle=no", "--ignore-fn=_ZN12_GLOBAL__N_1L13maybe_inlinedEi", *options[1:]]
    env = {"CASE": "names", "GLIBCXX_FORCE_NEW": "1", "GLIBCPP_FORCE_NEW": "1"}
    cwd, names = t.subdirectory(), ("valgrind.out", "ptmem.out")
    command = [t.program("valgrind"), *VALGRIND, "--massif-out-file=valgrind.out", *mangled, t.target("peer-not-inlined", CXX)]
    t.run([t.ptmem(), "--time-unit=B", "--peak-at-exit=no", "--massif-out-file=ptmem.out", "--demangle=no", *options,
           "--", t.target(GCC, CXX)], cwd=cwd, env=env)
    right = masked(os.path.join(cwd, names[1]))
    t.check(any("named" in l for l in right) and not any("maybe_inlined" in l for l in right), "what is ignored")

    def ask():
        t.run(command, cwd=cwd, env=env)
        left = [l.replace("peer-not-inlined", GCC) for l in masked(os.path.join(cwd, names[0]))]
        if left != right:
            raise Fail("massif (left) and ptmem differ, " + first_difference(left, right))

    confirmed.confirm(t, "peer/case-names-inlined", command, env, right, ask)
