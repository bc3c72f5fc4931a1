"""Reads what the counting shim (oracle.c) wrote: {pid: [Page, ...]}, one page for each image."""

import os
import struct

FIELDS = ("allocations", "reallocations", "frees", "bytes", "failed", "unknown", "live", "blocks", "peak")
MARK_WORD = 3 + 3 * len(FIELDS)
MAGIC = 0x656C6361726F7031


class Page:
    """all, own (called from the executable's code) and since (blocks made since the last mark) are
    dictionaries by FIELDS."""

    def __init__(self, data):
        words = struct.unpack_from("<%dQ" % MARK_WORD, data)
        if words[0] != MAGIC:
            raise ValueError("not a page of the oracle")
        self.pid, self.missed = words[1], words[2]
        self.all = dict(zip(FIELDS, words[3:]))
        self.own = dict(zip(FIELDS, words[3 + len(FIELDS):]))
        self.since = dict(zip(FIELDS, words[3 + 2 * len(FIELDS):]))


def page_names(directory):
    names = [n for n in os.listdir(directory) if n.startswith("oracle.") and n.count(".") == 2]
    return sorted(names, key=lambda n: [int(x) for x in n.split(".")[1:]])


def set_mark(directory, pid, mark):
    """Restarts `since` in the last image of @pid at its next call; so the process should be stopped."""
    name = [n for n in page_names(directory) if n.split(".")[1] == str(pid)][-1]
    with open(os.path.join(directory, name), "r+b") as file:
        file.seek(8 * MARK_WORD)
        file.write(struct.pack("<Q", mark))


def read_pages(directory):
    pages = {}
    for name in page_names(directory):
        with open(os.path.join(directory, name), "rb") as file:
            page = Page(file.read())
        pages.setdefault(page.pid, []).append(page)
    return pages
