# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""page_fault SECONDS THREADS KIB: what fresh memory costs, as JSON.

A program of its own, started by the benchmark `memory`; it imports nothing but the standard library. Threads of one
process ask the kernel for blocks, write them, and give them back, as a program does whose allocator keeps no memory.
All three steps are in C and without Python's lock, so the threads meet in the kernel alone.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import resource
import sys
import threading
import time
from typing import List

_FAILED = ctypes.c_void_p(-1).value


def library() -> ctypes.CDLL:
    """The C library, with the types of what is called."""
    found = ctypes.CDLL(None, use_errno=True)
    found.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_int,
        ctypes.c_long,
    )
    found.mmap.restype = ctypes.c_void_p
    found.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    found.memset.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t)
    found.memset.restype = ctypes.c_void_p
    return found


def write_blocks(size: int, until: float, counts: List[int]) -> None:
    """Write fresh blocks until then (monotonic time), and add how many they were."""
    memory, blocks = library(), 0
    access, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    while time.monotonic() < until:
        block = memory.mmap(None, size, access, kind, -1, 0)
        if block == _FAILED:
            break
        memory.memset(block, 1, size)
        memory.munmap(block, size)
        blocks += 1
    counts.append(blocks)


def main(seconds: float, threads: int, kib: int) -> None:
    counts: List[int] = []
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    writers = [
        threading.Thread(target=write_blocks, args=(kib * 1024, started + seconds, counts))
        for _thread in range(threads)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    after = resource.getrusage(resource.RUSAGE_SELF)
    found = {
        "seconds": time.monotonic() - started,
        "blocks": sum(counts),
        "page_faults": after.ru_minflt - before.ru_minflt,
        "user_seconds": after.ru_utime - before.ru_utime,
        "system_seconds": after.ru_stime - before.ru_stime,
    }
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
