"""Programs of interpreters that know the chain of functions of each of their allocations, and write them to `chains`, and to
`chains.child` in a fork: all must be in the recordings."""

import glob
import json
import os
import subprocess

from harness import report_json


def sum_chains(t, path, chain_of, internal=None):
    """{chain: [calls, bytes]} of the recording @path. @chain_of([(function, line)]), of the program's functions of a call path,
    innermost first, gives its chain; None: it does not count. @internal: the file that functions of the interpreter's in C have."""
    recording = report_json(t, path)
    frames, nodes, leaves = (recording[k] for k in ("frames", "nodes", "leaves"))
    chains = {}
    for leaf, node in enumerate(leaves["node"]):
        if not leaves["allocations"][leaf]:
            continue  # of the parent, before the fork
        functions = []
        while node >= 0:
            frame = nodes["frame"][node]
            file = frames["file"][frame]
            if file and (frames["object"][frame] < 0 or file == internal):
                functions.append((frames["function"][frame], frames["line"][frame]))
            node = nodes["parent"][node]
        chain = chain_of(functions)
        if chain is None:
            continue
        entry = chains.setdefault(chain, [0, 0])
        entry[0] += leaves["allocations"][leaf]
        entry[1] += leaves["bytes"][leaf]
    return chains


def check_chains(t, cwd, process, found_chains, what, least=30):
    """Those of @process, more than @least, and of its fork: @found_chains(t, path) gives those of the recording @path, as
    {chain: [calls, bytes]}."""
    truth = os.path.join(cwd, "chains")
    for name, path in ((truth, os.path.join(cwd, "recording.%d" % process)),
                       (truth + ".child", *[p for p in glob.glob(os.path.join(cwd, "recording.*"))
                                            if not p.endswith(".%d" % process)])):
        with open(name, encoding="utf-8") as file:
            want = json.load(file)
        got = found_chains(t, path)
        for chain in sorted(set(want) | set(got)):
            t.equal("%s, %s: calls and bytes of %s" % (what, os.path.basename(name), chain), got.get(chain), want.get(chain))
        t.check(len(want) > (30 if name.endswith(".child") else least), "%s has only %d chains" % (name, len(want)))


def check_started(t, argv, options, found_chains, what, least=30):
    """From the start."""
    cwd = t.subdirectory()
    profile = t.profile(argv, [*options, "--record=recording.%p"], cwd=cwd)
    t.equal("the exit status (%s)" % profile.err.decode()[-300:], profile.status, 0)
    check_chains(t, cwd, profile.stats[-1]["pid"], found_chains, what, least)
    t.check(not any("did not fit" in m for m in profile.messages), "stacks do not fit: %s" % profile.messages)


def run_attached(t, argv, options, env=None):
    """ptmem attaches to a program that has said that it waits: the interpreter's loop is on its stack. Returns the directory,
    the process, and ptmem's messages."""
    cwd = t.subdirectory()
    with subprocess.Popen([*argv, "wait"], cwd=cwd, env={**t.environment(cwd), **(env or {})}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        program.stdout.readline()
        with open(os.path.join(cwd, "err"), "wb") as err, \
             subprocess.Popen([t.ptmem(), *options, "-p", str(program.pid)], cwd=cwd, env=t.environment(cwd), stderr=err) as ptmem:
            def text():
                with open(os.path.join(cwd, "err"), encoding="utf-8") as file:
                    return file.read()
            t.wait_until("ptmem to attach", lambda: "ptmem: attached to process" in text() or ptmem.poll() is not None)
            program.stdin.write(b"\n")
            program.stdin.close()
            t.equal("the program's exit status", program.wait(), 0)
            t.equal("ptmem's exit status", ptmem.wait(), 0)
    return cwd, program.pid, text()
