"""seeds.py - chunks of traces, and where a seed is saved; part of make_corpus.py"""

import os
import struct
import subprocess
import zlib

from forge import uvar

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
FILE_HEADER, CHUNK_HEADER = 64, 96
META, MAPS, MODULE, EVENTS, THREADS, LOSSES, END, INDEX, STACKS, OVERRUNS, UNWOUND = range(1, 12)
COMPRESS, IS_FRAME, RAW_LEN, GAP, REPEAT = 1, 2, 4, 8, 16  # as in fuzz_chunk.c
SALT = 0x11223344


def save(target, name, content):
    with open(os.path.join(CORPUS, target, name), "wb") as out:
        out.write(content)


def text(content):
    return uvar(len(content)) + content


# Traces

def chunks_of(trace):
    """(type, payload) of each chunk of a whole trace."""
    at = FILE_HEADER
    while at < len(trace):
        kind, flags = struct.unpack_from("<HH", trace, at + 12)
        stored, = struct.unpack_from("<I", trace, at + 24)
        payload = trace[at + CHUNK_HEADER:at + CHUNK_HEADER + stored]
        if flags & 1:
            payload = subprocess.run(["zstd", "-dcq"], input=payload, stdout=subprocess.PIPE,
                                     check=True).stdout
        yield kind, payload
        at += CHUNK_HEADER + stored


def file_header(salt=SALT, mode=0):
    head = b"\xf5MLK\r\n\x1a\n" + struct.pack("<HHIQQIIQQI", 1, 0, 64, 0, 0, salt, mode, 0, 0, 0)
    return head + struct.pack("<I", zlib.crc32(head))


def chunk(kind, payload, seq=0, flags=0, raw_len=None, stored_len=None):
    head = b"\xf5CHK\r\n\x1a\n" + struct.pack(
        "<IHHQIIQQQQQIIQI", SALT, kind, flags, seq,
        len(payload) if stored_len is None else stored_len,
        len(payload) if raw_len is None else raw_len, 0, 0, 0, 0, 0, 1, zlib.crc32(payload), 0, 0)
    return head + struct.pack("<I", zlib.crc32(head)) + payload


def wrapped(kind, payload, how=0, raw_len=0):
    """A payload in the form of fuzz_chunk.c."""
    lie = struct.pack("<I", raw_len) if how & RAW_LEN else b""
    return struct.pack("<BBH", kind, how, len(payload)) + lie + payload
