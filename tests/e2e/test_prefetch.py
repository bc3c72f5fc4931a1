"""Whether the compiler left in what only makes things faster: no other test would miss it."""

import os
import re

from harness import BUILD, test


@test("prefetch/blocks")
def _(t):
    """The loops over many events fetch the table's lines ahead."""
    objects = os.path.join(os.path.dirname(os.path.realpath(os.path.join(BUILD, "ptmem"))), "src", "profile")
    for name in ("profile_quick", "memusage"):
        code = t.run([t.program("objdump"), "-d", "--no-show-raw-insn", os.path.join(objects, name + ".o")])
        t.equal("status of objdump: " + code.err.decode(), code.status, 0)
        loop = re.search(r"<%s>:\n.*?(?=\n\n|\Z)" % {"memusage": "memusage_quick"}.get(name, name), code.out.decode(), re.S)
        t.check(loop and re.search(r"\tprefetch|\tprfm", loop[0]), "prefetches in %s.o" % name)
