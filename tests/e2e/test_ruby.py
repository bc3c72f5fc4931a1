"""Functions of Ruby programs in stacks: targets/ruby_chains.rb knows the chain of functions of each of its allocations, and
all must be in the recording: with the calls and bytes of each, from the start or attached, in a fork."""

import glob
import json
import os
import re
import subprocess

import harness
from harness import report_json, test

SCRIPT = os.path.join(harness.ROOT, "tests", "targets", "ruby_chains.rb")
CLASS = re.compile(r"^((?:block (?:\(\d+ levels\) )?in |rescue in |ensure in )*)(?:(?:#<[^>]*>|[A-Z][\w:]*)[.#])?(.*)$")


def found_chains(t, path):
    """{chain: [calls, bytes]} of the recording @path, of what Fiddle.malloc allocated in `obtain`, as caller_locations has
    it: without classes, functions in C with the line of their caller."""
    recording = report_json(t, path)
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    chains = {}
    for leaf, node in enumerate(leaves["node"]):
        if not leaves["allocations"][leaf]:
            continue  # of the parent, before the fork
        names = []
        while node >= 0:
            frame = nodes["frame"][node]
            if frames["file"][frame] and (frames["object"][frame] < 0 or frames["file"][frame] == "<internal:ruby>"):
                names.append((frames["function"][frame], frames["line"][frame]))
            node = nodes["parent"][node]
        if len(names) < 2 or names[0][0] != "Fiddle.malloc" or names[1][0] != "obtain":
            continue
        line, chain = 0, []
        for name, own in reversed(names[1:]):
            line = own if own > 0 else line
            chain.append("%s:%d" % (CLASS.sub(r"\1\2", name), line))
        entry = chains.setdefault("<".join(reversed(chain)), [0, 0])
        entry[0] += leaves["allocations"][leaf]
        entry[1] += leaves["bytes"][leaf]
    return chains


def check_chains(t, cwd, process, what):
    truth = os.path.join(cwd, "chains")
    for name, path in ((truth, os.path.join(cwd, "recording.%d" % process)),
                       (truth + ".child", *[p for p in glob.glob(os.path.join(cwd, "recording.*"))
                                            if not p.endswith(".%d" % process)])):
        with open(name, encoding="utf-8") as file:
            want = json.load(file)
        got = found_chains(t, path)
        for chain in sorted(set(want) | set(got)):
            t.equal("%s, %s: calls and bytes of %s" % (what, os.path.basename(name), chain), got.get(chain), want.get(chain))
        t.check(len(want) > 30, "%s has only %d chains" % (name, len(want)))


@test("ruby/chains")
def started(t):
    cwd = t.subdirectory()
    profile = t.profile([t.program("ruby"), "--disable=gems", SCRIPT, "chains"], ["--record=recording.%p"], cwd=cwd)
    t.equal("the exit status (%s)" % profile.err.decode()[-300:], profile.status, 0)
    check_chains(t, cwd, profile.stats[-1]["pid"], "started")
    t.check(not any("did not fit" in m for m in profile.messages), "stacks do not fit: %s" % profile.messages)


@test("ruby/chains/attached")
def attached(t):
    cwd = t.subdirectory()
    with subprocess.Popen([t.program("ruby"), "--disable=gems", SCRIPT, "chains", "wait"], cwd=cwd, env=t.environment(cwd), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        with open(os.path.join(cwd, "err"), "wb") as err, \
             subprocess.Popen([t.ptmem(), "--record=recording.%p", "-p", str(program.pid)], cwd=cwd, env=t.environment(cwd),
                              stderr=err) as ptmem:
            def text():
                with open(os.path.join(cwd, "err"), encoding="utf-8") as file:
                    return file.read()
            t.wait_until("ptmem to attach", lambda: "ptmem: attached to process" in text() or ptmem.poll() is not None)
            program.stdin.write(b"\n")
            program.stdin.close()
            t.equal("the program's exit status", program.wait(), 0)
            t.equal("ptmem's exit status", ptmem.wait(), 0)
    check_chains(t, cwd, program.pid, "attached")
