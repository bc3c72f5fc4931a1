"""Names of inlined functions: those that addr2line has for the same addresses (LLVM's: the GNU one loses some of clang's), and
qualified where it has only the last part of the name."""

import re

from harness import test

FRAME = re.compile(r" *n\d+: \d+ 0x([0-9A-F]+): (.*) \(([^()]*:\d+)\)$")

# GCC gives no mangled name to functions that other files cannot call.
LOCAL = {"(anonymous namespace)::Table::Table", "(anonymous namespace)::Table::grow", "main::{lambda}::operator()",
         "main::{lambda}::operator()::Inner::in", "(anonymous namespace)::local_static", "app::v1::abi::helper"}
QUALIFIED = ("std::vector<int, std::allocator<int> >::push_back(int const&)", "::operator[](", "::make()", "::operator->()")


def shown(path):
    """Function and place of all frames at an address of the program, innermost first, by address."""
    out = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            found = FRAME.match(line)
            if found and int(found[1], 16) < 1 << 32:
                frames, name = out.setdefault(found[1], []), found[2].split(" [clone ")[0]
                if (name, found[3]) not in frames:
                    frames.append((name, found[3]))
    return out


def by_peer(t, peer, program, address):
    lines = t.run([t.program(peer), "-Cfi", "-e", program, "0x" + address]).out.decode().splitlines()
    places = [re.sub(r" \(discriminator \d+\)", "", place.rsplit("/", 1)[-1]) for place in lines[1::2]]
    return list(dict.fromkeys(zip((re.sub(r" \(\.\w.*\)$", "", name) for name in lines[::2]), places)))


def is_same(own, peer, local):
    if own[1] != peer[1]:
        return False
    if own[0] == peer[0]:
        return True
    return own[0] in local and own[0].rsplit("::", 1)[-1] == peer[0] or own[0].startswith("std::") and \
        own[0].endswith("::" + peer[0])


def check(t, variant, program, peer, local=()):
    path = t.target(variant, program)
    cwd = t.subdirectory()
    t.run([t.ptmem(), "--threshold=0", "--time-unit=B", "-o", "profile", "--", path], cwd=cwd)
    found, names = shown(cwd + "/profile"), set()
    for address, frames in found.items():
        names |= {name for name, _ in frames}
        peers = by_peer(t, peer, path, address)
        t.check(len(frames) == len(peers) and all(is_same(a, b, local) for a, b in zip(frames, peers)),
                "frames at 0x%s:\n%s\nby %s:\n%s" % (address, frames, peer, peers))
    t.check(any(len(frames) > 2 for frames in found.values()), "that functions were inlined")
    return names


@test("names/inlined-gcc")
def _(t):
    names = check(t, "names-gcc", "names_cxx", "llvm-addr2line", LOCAL)
    for part in QUALIFIED:
        t.check(any(part in name for name in names), part + " among the names: %s" % sorted(names))
    t.check(LOCAL <= names, "names missing: %s" % (LOCAL - names))


@test("names/inlined-clang")
def _(t):
    names = check(t, "names-clang", "names_cxx", "llvm-addr2line")
    for part in QUALIFIED[2:]:
        t.check(any(part in name for name in names), part + " among the names: %s" % sorted(names))


@test("names/compressed")
def _(t):
    """Compressed debug sections give the same names, also next to some that ptmem does not read."""
    program, cwd = t.target("names-gcc", "names_cxx"), t.subdirectory()
    packed = cwd + "/packed"
    t.run([t.program("objcopy"), "--compress-debug-sections", program, packed])
    sections = t.run(["readelf", "-SW", packed]).out.decode()
    t.check(re.search(r"\.debug_loc(lists)? .*C", sections), "that location lists are compressed:\n%s" % sections)
    for path in program, packed:
        t.run([t.ptmem(), "--threshold=0", "--time-unit=B", "-o", path.rsplit("/", 1)[-1] + ".out", "--", path], cwd=cwd)
    names, plain = (shown("%s/%s.out" % (cwd, path.rsplit("/", 1)[-1])) for path in (packed, program))
    t.check(len(plain) > 10, "that there are names: %s" % plain)
    t.equal("names", names, plain)


@test("names/inlined-rust")
def _(t):
    names = check(t, "names-rust", "names", "llvm-addr2line")
    t.check(any("{closure" in name for name in names), "a closure among the names: %s" % sorted(names))
