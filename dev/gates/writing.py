# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gate on what may write to a host."""

from __future__ import annotations

import ast
from typing import Iterator

from dev.gates import Copy
from dev.gates.rooms import ROOMS, UTILS, path_of, writers

# Calls of `os` that change a host or start a program, and its flags that open a file for writing.
OF_OS = {
    *("O_APPEND", "O_CREAT", "O_RDWR", "O_TRUNC", "O_WRONLY", "chmod", "chown", "fchmod", "fchown", "fork", "forkpty"),
    *("ftruncate", "lchown", "link", "makedirs", "mkdir", "mkfifo", "mknod", "popen", "posix_spawn", "posix_spawnp"),
    *("pwrite", "remove", "removedirs", "removexattr", "rename", "renames", "replace", "rmdir", "sendfile", "setxattr"),
    *("symlink", "system", "truncate", "unlink", "utime", "write", "writev"),
}
# Functions that do the same, and methods: those of a host, of a place, of Ansible and of the standard library.
FUNCTIONS = {"remove_empty", "remove_file", "remove_temporary", "replace_file", "write_all"}
CALLS = {
    *FUNCTIONS,
    *("command", "output", "set_driver", "set_routing", "write", "write_value"),
    *("atomic_move", "run_command", "touch", "write_bytes", "write_text"),
}
PROCESSES = {"ctypes", "fcntl", "multiprocessing", "pathlib", "shutil", "socket", "subprocess", "tempfile"}


def only_the_writing_part_writes(copy: Copy) -> "list[str]":
    """Of the code for hosts, only the `writers` of rooms.toml, and its `others` as far as it says, change a host."""
    names = {name for row in writers(copy).values() for name in row}
    unused = {(row, word) for row, other in ROOMS["others"].items() for word in other["may"]}
    problems = []
    for name in copy.having(".py", below=UTILS) + copy.having(".py", below="plugins/modules/"):
        if name in names or name.startswith(f"{UTILS}_cloud/"):  # which runs on the controller
            continue
        rows = [row for row in ROOMS["others"] if name.startswith(path_of(row))]
        for line, word in _changes(copy.tree(name)):
            if not any(word in ROOMS["others"][row]["may"] for row in rows):
                problems.append(f"{name}:{line}: {word}, outside of what may write (dev/gates/rooms.toml)")
            unused.difference_update((row, word) for row in rows)
    if names:
        problems += [f"dev/gates/rooms.toml: {row} has no use of {word}: remove it" for row, word in sorted(unused)]
        problems += [f"dev/gates/rooms.toml: {row} names no file" for row, found in writers(copy).items() if not found]
    return problems


def _changes(tree: ast.Module) -> "Iterator[tuple[int, str]]":
    """What a file uses by which a host could be changed."""
    for node in ast.walk(tree):
        words: "set[str]" = set()
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "os":
            words = {node.attr} if node.attr in OF_OS or node.attr.startswith(("exec", "spawn")) else set()
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            words = {node.func.attr} & CALLS
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            words = {node.func.id} & ({"open", *FUNCTIONS} if _mode(node) & set("wax+") else FUNCTIONS)
        elif isinstance(node, ast.Import):
            words = {alias.name.split(".")[0] for alias in node.names} & PROCESSES
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            words = {node.module} & PROCESSES or {alias.name for alias in node.names if node.module == "os"} & OF_OS
        yield from ((getattr(node, "lineno", 1), word) for word in sorted(words))


def _mode(call: ast.Call) -> "set[str]":
    modes = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
    return {letter for mode in modes if isinstance(mode, ast.Constant) for letter in str(mode.value)}
