"""The peer beside it: `valgrind --tool=massif --time-unit=B` and `ptmem --time-unit=B --peak-at-exit=no` give the
same file for a deterministic program, after addresses are masked, and ptmem-report and ms_print the
same text for both.

Intended differences (doc/massif.md, sections 2.5, 2.6 and 5) are avoided by the choice of programs: the
C library's and the C++ library's clean-up at exit is switched off, no alignment above 16, no pvalloc, no
failing realloc. Valgrind's allocator leaves 16 bytes more with some blocks of real programs; the
sizes of the test programs are such that it does not.
"""


from peer_lib import register


def target(variant, program, *args):
    return lambda t: [t.target(variant, program), *args]


OPTION_SETS = {
    "plain": [],
    "threshold-0": ["--threshold=0"],
    "threshold-10": ["--threshold=10"],
    "depth-3": ["--depth=3"],
    "depth-1": ["--depth=1"],
    "detailed-1": ["--detailed-freq=1", "--max-snapshots=20"],
    "detailed-3": ["--detailed-freq=3"],
    "snapshots-10": ["--max-snapshots=10"],
    "snapshots-11": ["--max-snapshots=11", "--threshold=0"],
    "snapshots-1000": ["--max-snapshots=1000"],
    "admin-0": ["--heap-admin=0"],
    "admin-100": ["--heap-admin=100"],
    "inaccuracy-0": ["--peak-inaccuracy=0"],
    "inaccuracy-25": ["--peak-inaccuracy=25", "--detailed-freq=2"],
    "alloc-fn": ["--alloc-fn=step", "--alloc-fn=even", "--threshold=0"],
    "ignore-fn": ["--ignore-fn=leaf_one", "--ignore-fn=step"],
}

for option_set, opts in OPTION_SETS.items():
    register("peer-" + option_set, target("gcc-O2-pie", "peer", "1"), opts)
for v in ("gcc-O0-pie", "gcc-O2-nopie", "gcc-O3-pie", "clang-O0-nopie", "clang-O2-pie", "clang-O3-nopie"):
    register("peer-" + v, target(v, "peer", "2"), ["--threshold=0"])
register("peer-seed-3", target("gcc-O2-pie", "peer", "3", "8000"))
register("peer-seed-4", target("clang-O0-nopie", "peer", "4", "8000"), ["--threshold=0.1"])
register("stacks-alloc-fn", target("gcc-O2-pie", "peer", "5"), ["--alloc-fn=step", "--depth=5"])
register("cxx", target("gcc-O2-pie", "peer_cxx"), ["--threshold=0"])
register("cxx-O0", target("clang-O0-nopie", "peer_cxx"), ["--threshold=0", "--max-snapshots=50"])
register("cxx-O3", target("gcc-O3-pie", "peer_cxx"), ["--threshold=0", "--depth=6"])
register("cxx-stripped", target("gcc-O2-stripped", "peer_cxx"), ["--threshold=0"])
register("stripped", target("clang-O2-stripped", "peer", "6"), ["--threshold=0"])
register("empty", target("gcc-O2-pie", "empty"))
register("true", lambda t: [t.program("true")])
