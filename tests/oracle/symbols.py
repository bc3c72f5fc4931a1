#!/usr/bin/env python3
"""Compares our names with Valgrind's, address by address.

usage: symbols.py BUILD_DIR PROGRAM [ARGS...]

Runs PROGRAM under `valgrind --tool=massif`, takes every distinct address in its trees,
and asks build/MODE's library (through symbols_at) for the same. Prints what differs; exit
status 1 if anything does. BUILD_DIR: build/debug or the like, with libptmem.a in it.
MASSIF_OPTIONS in the environment: more options for massif; a static program, whose
malloc Valgrind does not see, needs --pages-as-heap=yes.
"""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
NODE = re.compile(r'^( +)n(\d+): \d+ 0x([0-9A-F]+): (.*)$')


def build(build_dir, tmp):
    tool, preload = os.path.join(tmp, 'symbols_at'), os.path.join(tmp, 'dump_maps.so')
    libs = subprocess.check_output(['pkg-config', '--libs', 'libelf', 'libdw'], text=True).split()
    subprocess.check_call(['gcc', '-O1', '-g', '-D_GNU_SOURCE', '-I' + ROOT, '-I' + ROOT + '/src',
                           HERE + '/symbols_at.c', build_dir + '/libptmem.a', '-o', tool, *libs,
                           '-liberty', '-lz'] + (['-fsanitize=address,undefined'] if 'asan' in build_dir else []))
    subprocess.check_call(['gcc', '-shared', '-fPIC', HERE + '/dump_maps.c', '-o', preload])
    return tool, preload


def run_massif(argv, preload, tmp):
    out, maps = os.path.join(tmp, 'massif.out'), os.path.join(tmp, 'maps')
    env = dict(os.environ, LD_PRELOAD=preload, MAPS_OUT=maps)
    subprocess.run(['valgrind', '-q', '--tool=massif', '--time-unit=B', '--show-below-main=yes',
                    '--threshold=0', '--detailed-freq=1', '--max-snapshots=20', '--depth=100',
                    '--massif-out-file=' + out, *os.environ.get('MASSIF_OPTIONS', '').split(), *argv],
                   env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    if not os.path.exists(maps):  # a static program: it lies where its file says
        return out, static_maps(os.path.realpath(argv[0]))
    with open(maps) as f:
        return out, [parse_map(line) for line in f]


def static_maps(path):
    text = subprocess.check_output(['readelf', '-lW', path], text=True)
    loads = [[int(x, 16) for x in line.split()[1:6]] for line in text.splitlines() if ' LOAD ' in line]
    return [(vaddr, vaddr + size, offset, path) for offset, vaddr, _, size, _ in loads]


def parse_map(line):
    words = line.split(None, 5)
    low, high = (int(x, 16) for x in words[0].split('-'))
    return low, high, int(words[2], 16), words[5].strip() if len(words) > 5 else ''


def chains(path):
    """Every run of lines with one address, each one deeper: (address, frames)."""
    found, address, depth, frames = {}, None, -1, []
    for line in open(path, errors='replace'):
        m = NODE.match(line)
        here = (int(m[3], 16), len(m[1])) if m else (None, -1)
        if m and here == (address, depth + 1):
            frames.append(m[4])
        else:
            if frames:
                found.setdefault(address, set()).add(tuple(frames))
            frames = [m[4]] if m else []
        address, depth = here
    return found


def main():
    build_dir, argv = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as tmp:
        tool, preload = build(build_dir, tmp)
        out, maps = run_massif(argv, preload, tmp)
        theirs = chains(out)
        asked, where = [], []
        for address in sorted(theirs):
            for low, high, offset, name in maps:
                if low <= address < high and name.startswith('/'):
                    asked.append(address)
                    where.append('%s %x' % (name, address - low + offset))
        answer = subprocess.run([tool], input='\n'.join(where), text=True, errors='replace',
                                stdout=subprocess.PIPE, check=True).stdout
    ours = [a.split('\n') for a in answer.rstrip('\n').split('\n\n')] if asked else []
    differ = 0
    for address, place, frames in zip(asked, where, ours):
        # a call site that recurses at once gives one run with the frames several times
        if any(list(t) != frames * (len(t) // len(frames)) for t in theirs[address]):
            differ += 1
            print('%s\n  valgrind %s\n  ptmem    %s' % (place, list(theirs[address])[:3], frames))
    print('%s: %d addresses, %d differ' % (argv[0], len(asked), differ))
    return differ > 0 or not asked


sys.exit(main())
