"""--inspect: what is in and beside VmRSS: shared memory by name, huge pages of hugetlbfs, the control group; and what would return
if the blocks that pin pages were elsewhere.
"""

import csv
import json
import os
import re
import subprocess
import sys

from harness import Fail, Skip, test
from inspect_lib import Typed
from process_lib import is_asleep

PAGE = 4096
FEW = 1024
SHARED = """
import mmap, os, sys
kept = []
for name, mib in (("first\\n name", 3), ("second", 2), ("second", 1)):
    fd = os.memfd_create(name)
    os.ftruncate(fd, mib << 20)
    kept.append(mmap.mmap(fd, mib << 20))
kept.append(mmap.mmap(-1, 1 << 19))
for m in kept:
    m.write(b"x" * len(m))
print("ready", flush=True)
sys.stdin.read()
"""


def inspect(t, pid, name, *options):
    path = os.path.join(t.subdirectory(), name)
    run = t.run([t.ptmem(), "-q", "--inspect", "-p", str(pid), "--inspect-out=" + path, *options])
    t.equal("status (%r)" % run.err, run.status, 0)
    with open(path, encoding="utf-8") as file:
        return file.read()


def status_of(pid, key):
    with open("/proc/%d/status" % pid, encoding="ascii") as file:
        found = re.search(r"^%s:\s*(\d+) kB$" % key, file.read(), re.M)
    return int(found[1]) * 1024 if found else 0


@test("inspect/around/shared")
def shared(t):
    """Shared memory by name adds up to its row."""
    with subprocess.Popen([sys.executable, "-c", SHARED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment(t.directory)) as program:
        if program.stdout.readline() != b"ready\n":
            raise Fail("the program did not begin")
        report = json.loads(inspect(t, program.pid, "r.json"))
        text = inspect(t, program.pid, "r.txt")
        program.stdin.close()
    names = {e["name"]: e["resident"] for e in report["shared_by_name"]}
    t.equal("sums", (sum(names.values()), sum(e["swapped"] for e in report["shared_by_name"])), tuple(report["rows"]["shared"].values()))
    t.equal("memfd", sorted(size for name, size in names.items() if name.startswith("/memfd:")), [3 << 20, 3 << 20])
    t.equal("two of one name", names["/memfd:second"], 3 << 20)
    t.check(1 << 19 in names.values(), str(names))
    sizes = re.findall(r"^ +([\d,]+) .* of shared memory: /memfd:\S+", text, re.M)
    t.equal("lines", sizes, ["3,145,728"] * 2)
    t.equal("hugetlbfs", report["HugetlbPages"], 0)


HUGE = """
import mmap, sys
m = mmap.mmap(-1, 18 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
m.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, len(m), 1 << 20):
    m[at + 5000] = 1
print("ready", flush=True)
sys.stdin.read()
"""


def huge_mappings(pid):
    """{(start, end): bytes in huge pages}"""
    found = {}
    with open("/proc/%d/smaps" % pid, encoding="utf-8") as file:
        for line in file:
            match = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
            if match:
                at = int(match[1], 16), int(match[2], 16)
            elif line.startswith("AnonHugePages:"):
                found[at] = int(line.split()[1]) << 10
    return {at: size for at, size in found.items() if size}


def bounds_of_zeros(pid, mappings):
    """Bytes in pages of zeros: those of a mapping may not be in its huge pages."""
    least = most = 0
    with open("/proc/%d/mem" % pid, "rb") as file:
        for (start, end), size in mappings.items():
            file.seek(start)
            zeros = sum(not any(file.read(PAGE)) for _ in range(start, end, PAGE)) * PAGE
            least += max(zeros - (end - start - size), 0)
            most += min(zeros, size)
    return least, most


@test("inspect/around/huge")
def huge(t):
    """Transparent huge pages, and the small pages in them that hold only zeros."""
    with subprocess.Popen([sys.executable, "-c", HUGE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=t.environment(t.directory)) as program:
        if program.stdout.readline() != b"ready\n":
            raise Fail("the program did not begin")
        before, after = None, huge_mappings(program.pid)
        while before != after:  # the kernel may join pages meanwhile
            before = after
            text, report = inspect(t, program.pid, "r.txt"), json.loads(inspect(t, program.pid, "r.json"))
            bounds = bounds_of_zeros(program.pid, before)
            after = huge_mappings(program.pid)
        program.stdin.close()
    every, zeros = sum(before.values()), report["huge_pages_zeros"]
    t.equal("huge pages", (report["AnonHugePages"], "in transparent huge pages\n" in text), (every, every > 0))
    if not every:
        raise Skip("the kernel gives no huge pages")
    if not report["huge_pages_read"] and [int(n) for n in re.findall(r"\d+", os.uname().release)[:2]] < [6, 7]:
        return  # it cannot be known where they are
    t.equal("read", report["huge_pages_read"], every)
    t.check(0 < bounds[0] <= zeros <= bounds[1], "%d bytes of zeros, not from %d to %d" % (zeros, *bounds))
    t.check(re.search(r"^ +%s +of these: small pages that hold only zeros$" % f"{zeros:,}", text, re.M), text)


@test("inspect/around/cgroup")
def cgroup(t):
    """Parts of the control group's memory add up to all that is charged to it; anonymous memory of the process is one of them."""
    with subprocess.Popen(["sleep", "1000"], env=t.environment(t.directory)) as program:
        t.wait_until("it to sleep", lambda: is_asleep(program.pid))
        report, text = json.loads(inspect(t, program.pid, "r.json")), inspect(t, program.pid, "r.txt")
        own = status_of(program.pid, "RssAnon")
        program.kill()
    if "cgroup" not in report:
        t.check("control group" not in text, text)
        return
    parts = dict(report["cgroup"])
    everything = parts.pop("all")
    t.equal("sum", sum(parts.values()), everything)
    t.check(0 < parts["anonymous"] <= own, "%d of %d" % (parts["anonymous"], own))
    t.check(re.search(r"100\.0 %  all that is charged to it\n", text), text)


@test("inspect/around/elsewhere")
def elsewhere(t):
    """Pages that only blocks of one type pin, against the list of blocks."""
    program = Typed(t, [t.target("gcc-O2-pie", "typed")])
    program.make(b"p")
    pid = program.process.pid
    report = json.loads(inspect(t, pid, "r.json"))
    pages = {}
    for row in csv.DictReader(inspect(t, pid, "b.csv").splitlines()):
        start = int(row["address"], 16) - 8 # the size in front of it is its own
        end = start + 8 + int(row["bytes"])
        for page in range(start // PAGE, (end - 1) // PAGE + 1):
            pages.setdefault(page, []).append((row["type"], min(end, (page + 1) * PAGE) - max(start, page * PAGE)))
    alone = sum({t for t, _ in blocks} == {"C++ Pin"} and sum(n for _, n in blocks) <= FEW for blocks in pages.values())
    found = next(e for e in report["types"] if e["name"] == "Pin")
    t.equal("bytes", found["returned_elsewhere"], alone * PAGE)
    t.check(0 < alone <= found["nearly_empty_pages"], "%d, %s" % (alone, found))
    text = inspect(t, pid, "r.txt")
    t.check(re.search(r"pages by C\+\+ Pin .*\n +[\d.]+ [KM]iB would return if these were elsewhere \(%d pages\)\n" % alone, text), text)
    program.end()
