#!/usr/bin/env python3
"""cfi_all.py - compare the call frame information of every ELF file below some folders

usage: cfi_all.py TOOLS FOLDER...     (TOOLS: where cfi_rows and cfi_at were built)

All rows are compared with libdw's.  Then with readelf's: all rows of a sample of the files, and of
each file with rows for which libdw has no CFA.  Exit status: 1 if there is a difference.
"""

import concurrent.futures
import os
import sys

import cfi_oracle

AT_ONCE = 100     # files for one run of cfi_rows
ONE_OF = 40       # files compared with readelf, which takes long
SMALL = 4 << 20   # bytes of a file that readelf is asked about


def elf_files(folders):
    for folder in folders:
        for where, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(where, name)
                try:
                    if cfi_oracle.is_elf(path):
                        yield path
                except OSError:
                    pass


def with_libdw(tools, paths, pool):
    parts = [paths[i:i + AT_ONCE] for i in range(0, len(paths), AT_ONCE)]
    for found, rest in pool.map(lambda part: cfi_oracle.compare_with_libdw(tools, part), parts):
        for line in rest:
            print(line)
        yield from found


def with_readelf(tools, path):
    try:
        return cfi_oracle.compare_with_readelf(tools, path), None
    except cfi_oracle.Differs as difference:
        return 0, str(difference)


def main():
    tools, folders = sys.argv[1], sys.argv[2:]
    paths = sorted(elf_files(folders))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        tallies = list(with_libdw(tools, paths, pool))
        rows, differences, refused, fdes, unread = (
            sum(t[i] for t in tallies) for i in range(1, 6))
        print("libdw: %d files with .eh_frame, %d FDEs, %d rows: %d differences; "
              "%d rows without a CFA by libdw; %d FDEs not read" %
              (len(tallies), fdes, rows, differences, refused, unread))
        sample = [t[0] for i, t in enumerate(tallies)
                  if t[3] or (i % ONE_OF == 0 and os.path.getsize(t[0]) < SMALL)]
        results = list(pool.map(lambda path: with_readelf(tools, path), sample))
    wrong = [text for _, text in results if text]
    for text in wrong:
        print(text)
    print("readelf: %d files, %d rows: %d files with differences" %
          (len(sample), sum(nr for nr, _ in results), len(wrong)))
    return 1 if differences or wrong or unread or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
