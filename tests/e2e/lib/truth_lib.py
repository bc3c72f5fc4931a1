"""What several tests of truth share."""

import harness

BOTH = ("gcc-O2-pie", "clang-O0-nopie")
OWN = tuple(k for k in harness.COUNTED if k != "failed")  # a failed call has no site


def compare_threads(t, variant, program, args=(), status=0, out=b"", options=()):
    profile = t.profile([t.target(variant, program), *args], options=["--events=events", *options])
    t.equal("status", profile.status, status)
    t.equal("standard output", profile.out, out)
    stats, found = profile.only_stats(), profile.events(program)
    t.counts("ptmem and its events", stats, found.all)
    t.counts("events of the program's own sites and the truth", found.own, t.truth(profile.directory), OWN)
    t.equal("blocks replaced by others at their address", stats["replaced"], 0)
    return stats
