"""scripts/outputs: for fixed inputs every output is the same in another directory and at another time; a change is found."""

import os

import harness
from harness import test

SCRIPT = os.path.join(harness.ROOT, "scripts/outputs")


@test("outputs/recorded", limit=120)
def recorded(t):
    env, out = {"BUILD": harness.BUILD}, os.path.join(t.subdirectory(), "out")
    first = t.run([SCRIPT, "record", out], env=env)
    t.equal("record: %s%s" % (first.out.decode(), first.err.decode()), first.status, 0)
    names = ["massif", "report-page", "refused/options"]
    same = t.run([SCRIPT, "compare", out, *names], env=env)
    t.equal("the same", (same.status, same.out.decode().splitlines()), (0, ["ok " + n for n in names] + ["3 passed, 0 failed"]))
    os.unlink(os.path.join(out, "massif/stdout"))
    for name, old, new in (("report-page/file.page.html.json", b'"command":"./leaks', b'"command":"./leeks'),
                           ("refused/options/status", b"1\n", b"255\n")):
        with open(os.path.join(out, name), "r+b") as file:
            changed = file.read().replace(old, new, 1)
            t.check(new in changed, name)
            file.seek(0)
            file.write(changed)
    other = t.run([SCRIPT, "compare", out, *names], env=env)
    text = other.out.decode()
    t.equal("status", (other.status, text.splitlines()[-1]), (1, "0 passed, 3 failed"))
    for word in ("FAIL massif\n  stdout is new\n", "FAIL report-page\n  file.page.html.json differs at byte ",
                 "FAIL refused/options\n  status differs at byte 0, line 1; 4 bytes, now 2\n"):
        t.check(word in text, text)
