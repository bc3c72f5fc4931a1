"""Functions of Ruby programs in stacks: targets/ruby_chains.rb knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in a fork."""

import os
import re

import harness
from chains_lib import check_chains, check_started, run_attached, sum_chains
from harness import test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "ruby_chains.rb")
CLASS = re.compile(r"^((?:block (?:\(\d+ levels\) )?in |rescue in |ensure in )*)(?:(?:#<[^>]*>|[A-Z][\w:]*)[.#])?(.*)$")


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what Fiddle.malloc allocated in `obtain`, as caller_locations has
    it: without classes, functions in C with the line of their caller."""
    def chain_of(functions):
        if len(functions) < 2 or functions[0][0] != "Fiddle.malloc" or functions[1][0] != "obtain":
            return None
        line, chain = 0, []
        for name, own in reversed(functions[1:]):
            line = own if own > 0 else line
            chain.append("%s:%d" % (CLASS.sub(r"\1\2", name), line))
        return "<".join(reversed(chain))
    return sum_chains(t, path, chain_of, "<internal:ruby>")


@test("ruby/chains")
def started(t):
    check_started(t, [t.program("ruby"), "--disable=gems", SCRIPT, "chains"], [], found_chains, "started")


@test("ruby/chains/attached")
def attached(t):
    cwd, pid, _ = run_attached(t, [t.program("ruby"), "--disable=gems", SCRIPT, "chains"], ["--record=recording.%p"])
    check_chains(t, cwd, pid, found_chains, "attached")
