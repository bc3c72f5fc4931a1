#!/usr/bin/env python3
"""Compares our inlined frames and lines with `addr2line -aif`, for every call in a file.

usage: addr2line.py SYMBOLS_AT FILE [ADDR2LINE]

SYMBOLS_AT: the program built from symbols_at.c. Only places are
compared: addr2line gives inlined functions other names.
"""
import re
import subprocess
import sys


def calls(path):
    text = subprocess.check_output(['objdump', '-d', '--no-show-raw-insn', path], text=True)
    return [m[1] for m in re.finditer(r'^ +([0-9a-f]+):\tcall ', text, re.M)]


def text_shift(path):
    """Virtual address minus file offset of the executable segment."""
    for line in subprocess.check_output(['readelf', '-lW', path], text=True).splitlines():
        words = line.split()
        if words[:1] == ['LOAD'] and 'E' in ''.join(words[6:-1]):
            return int(words[2], 16) - int(words[1], 16)
    return 0


def place(text):
    """file:line without directory and discriminator; '' where unknown."""
    text = re.sub(r' \(discriminator \d+\)', '', text).rsplit('/', 1)[-1]
    return '' if text.startswith('??') or text.endswith((':?', ':0')) else text


def theirs(tool, path, addresses):
    out = subprocess.run([tool, '-aif', '-e', path], input='\n'.join('0x' + a for a in addresses),
                         text=True, stdout=subprocess.PIPE, check=True).stdout
    return [[place(x) for x in block.strip().split('\n')[1::2]]
            for block in re.split(r'^0x[0-9a-f]+$', out, flags=re.M)[1:]]


def ours(tool, path, addresses):
    shift = text_shift(path)
    lines = '\n'.join('%s %x' % (path, int(a, 16) - shift) for a in addresses)
    out = subprocess.run([tool], input=lines, text=True, stdout=subprocess.PIPE, check=True).stdout
    result = []
    for block in out.rstrip('\n').split('\n\n'):
        places = [re.search(r' \(([^()]*:\d+)\)$', frame) for frame in block.split('\n')]
        result.append([m[1] if m and not m[1].endswith(':0') else '' for m in places])
    return result


def main():
    tool, path = sys.argv[1:3]
    addresses = calls(path)
    a, b = theirs((sys.argv[3:] + ['addr2line'])[0], path, addresses), ours(tool, path, addresses)
    differ = [(x, y, z) for x, y, z in zip(addresses, a, b) if y != z]
    for x, y, z in differ[:20]:
        print('%s\n  addr2line %s\n  ptmem     %s' % (x, y, z))
    print('%s: %d addresses, %d differ' % (path, len(addresses), len(differ)))
    return bool(differ) or len(a) != len(b) or not a


sys.exit(main())
