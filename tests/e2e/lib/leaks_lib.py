"""What several tests of leaks share."""

import subprocess

from harness import Fail

KINDS = {"reach": "still reachable", "lost": "definitely lost", "follow": "indirectly lost",
         "inside": "possibly lost"}
# The makers of leaks.c: name -> blocks.
MAKERS = {"reach_global": 1, "reach_global_child": 1, "inside_global": 1, "inside_child": 1, "lost_plain": 1,
          "lost_head": 1, "follow_list": 9, "lost_cycle": 1, "follow_cycle": 1, "lost_past_end": 1, "reach_tls": 1,
          "reach_register": 1, "reach_stack": 1, "reach_ignored": 1, "reach_library": 1, "reach_main_stack": 1}
EXPECTED = {name: {KINDS[name.split("_")[0]]: blocks} for name, blocks in MAKERS.items()}


def library(t):
    return t.target("lib", "libhold.so")


class Waiting:
    """The leaks target with "wait": a byte for each step."""

    def __init__(self, t, **env):
        self.command = [t.target("gcc-O2-pie", "leaks"), library(t), "wait"]
        self.process = subprocess.Popen(self.command, cwd=t.directory, env=t.environment(t.directory, **env),
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def step(self, answer):
        self.process.stdin.write(b".")
        self.process.stdin.flush()
        got = self.process.stdout.readline()
        if got != answer:
            raise Fail("the program answered %r" % got)


def folded_sum(path):
    with open(path, encoding="utf-8") as file:
        return sum(int(line.rsplit(" ", 1)[1]) for line in file)
