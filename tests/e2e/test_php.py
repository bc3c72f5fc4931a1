"""Functions of PHP programs in stacks: targets/php_chains.php knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in a fork."""

import os

import harness
from chains_lib import check_chains, check_started, run_attached, sum_chains
from harness import test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "php_chains.php")
INTERNAL = "<internal:php>"


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what str_repeat allocated in `obtain`."""
    def chain_of(functions):
        names = ["%s:%d" % (name, max(line, 0)) for name, line in functions]
        if len(names) < 2 or names[0] != "str_repeat:0" or not names[1].startswith("obtain:"):
            return None
        return "<".join(names[1:])
    return sum_chains(t, path, chain_of, INTERNAL)


@test("php/chains")
def started(t):
    check_started(t, [t.program("env"), "USE_ZEND_ALLOC=0", t.program("php"), SCRIPT, "chains"], [], found_chains, "started")


@test("php/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [t.program("php"), SCRIPT, "chains"], ["--record=recording.%p"], {"USE_ZEND_ALLOC": "0"})
    check_chains(t, cwd, pid, found_chains, "attached")
