# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of `perf script` folded into a tree of functions, in bounded memory. Pure. PRIVATE to the collection."""

from __future__ import annotations

import re
from array import array
from typing import Any, Collection, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from .._words import clipped, printable

MOST_NODES = 150_000  # functions in their place in the tree: 64 MiB hold them, with all else of the process
MOST_NAMES = 30_000
_MOST_FRAMES = 127  # of one stack, from its root: what the kernel records
_MOST_LINES = 8_000  # whose function is remembered, because most lines recur
LONGEST_NAME = 160
UNKNOWN, JIT, OTHERS = "[unknown]", "[jit]", "[others]"
KERNEL_MARK, JIT_MARK = "_[k]", "_[j]"
_NAMELESS_KERNEL = f"[kernel]{KERNEL_MARK}"
# "redis-server 712 [001] cpu-clock: ", and where there is no stack the function behind it.
_HEAD = re.compile(r"(\S.*?) +([0-9]+) +\[[0-9]+\] +\S+: *(.*)", re.ASCII)
_FRAME = re.compile(r"\s*([0-9a-f]{1,16}) (.+) \((.*)\)", re.ASCII)
_OFFSET = re.compile(r"\+0x[0-9a-f]+$", re.ASCII)
_IDLE = re.compile(
    r"(?:\w*safe_halt|default_idle\w*|\w*intel_idle\w*|acpi_idle\w*|acpi_processor_ffh_cstate_enter|mwait_idle\w*"
    r"|poll_idle|arch_cpu_idle|cpu_do_idle|cpu_idle_poll|cpuidle\w*|do_idle|xen_hypercall_sched_op|HYPERVISOR_sched_op"
    r"|\[kernel\])_\[k\]",
    re.ASCII,
)


class Tree(NamedTuple):
    """Functions in their places, callers before what they call; `own` counts the samples that ended there."""

    names: Sequence[str]
    depth: Sequence[int]  # of the program 0
    name: Sequence[int]
    own: Sequence[int]

    def stacks(self) -> Iterator[Tuple[List[int], int]]:
        """Each stack as the numbers of its names, the program first, with its samples; the list is used again."""
        path: List[int] = []
        for depth, name, own in zip(self.depth, self.name, self.own):
            path[depth:] = [name]
            if own:
                yield path, own

    def lines(self) -> Iterator[str]:
        """One line for each stack, `program;caller;function 12`."""
        return (f"{';'.join(map(self.names.__getitem__, path))} {own}" for path, own in self.stacks())

    def shares(self, own: bool = False) -> Dict[str, float]:
        """Function → the share of all samples in which it is anywhere in the stack, or of those that ended in it."""
        counts: Dict[int, int] = {}
        for path, samples in self.stacks():
            for name in path[-1:] if own else set(path):
                counts[name] = counts.get(name, 0) + samples
        whole = sum(self.own)
        return {self.names[name]: count / whole for name, count in counts.items()}

    def share_of(self, functions: Collection[str]) -> float:
        """The share of all samples in which any of these functions is; of `caller>function` only below this caller."""
        numbers = {name: number for number, name in enumerate(self.names)}
        wanted = {numbers[name] for name in functions if name in numbers}
        pairs = {tuple(map(numbers.get, name.split(">"))) for name in functions if ">" in name}
        found = sum(
            own
            for path, own in self.stacks()
            if not wanted.isdisjoint(path) or (pairs and not pairs.isdisjoint(zip(path, path[1:])))
        )
        return found / (sum(self.own) or 1)


class Folder:
    """Takes lines of `perf script`. What there is no room for is counted in the last caller that is known."""

    def __init__(self, nodes: int = MOST_NODES, names: int = MOST_NAMES) -> None:
        self.samples = self.idle = self.cut = 0
        self.nameless: Dict[str, int] = {}  # what a sample without the name of its function ended in → samples
        self.rootless = 0  # samples in a program of which only one function is known
        self._most_nodes, self._most_names = nodes, names
        self._names: Dict[str, int] = {}
        self._places: Dict[int, int] = {}  # caller and name → place
        self._callers, self._name, self._own = array("i"), array("i"), array("q")
        self._remembered: Dict[str, str] = {}
        self._program: Optional[Tuple[str, bool]] = None
        self._frames: List[str] = []

    def add(self, lines: Iterable[str]) -> None:
        """The next lines; each line ends a sample that isn't a function of it."""
        remembered, frames = self._remembered, self._frames
        for line in lines:
            name = remembered.get(line)
            if name is not None:
                frames.append(name)
            elif line[:1] in "\t ":
                frames.append(self._function(line))
            else:
                self.end()
                self._begin(line)

    def end(self) -> None:
        """Count the sample whose last line was added."""
        program, self._program = self._program, None
        if program is None:
            self._frames.clear()
            return
        stack = [name for name, below in zip(self._frames, [None, *self._frames]) if name != below or name[0] != "["]
        self._frames.clear()
        while len(stack) > 1 and stack[-1] == UNKNOWN:  # no function: what a program without frame pointers left there
            stack.pop()
        if program[1] and (not stack or _IDLE.fullmatch(stack[0])):
            self.idle += 1
            return
        self.samples += 1
        if not stack or stack[0][0] == "[":
            leaf = stack[0] if stack else UNKNOWN
            self.nameless[leaf] = self.nameless.get(leaf, 0) + (leaf in self.nameless or len(self.nameless) < 1000)
        if not program[1] and sum(not name.endswith(KERNEL_MARK) and name != UNKNOWN for name in stack) == 1:
            self.rootless += 1
        self._count(program[0], stack[::-1][:_MOST_FRAMES])

    def tree(self) -> Tree:
        """All samples, the callers in the order of their names."""
        self.end()
        names = list(self._names)
        # The places that a caller called are a chain from its last one: lists would take as much memory as all else.
        last, earlier = array("i", [-1]) * (len(self._own) + 1), array("i")
        for place, caller in enumerate(self._callers):
            earlier.append(last[caller])
            last[caller] = place  # of -1 the last entry
        depths, order = array("i"), array("i")
        left = [(-1, -1)]
        while left:
            place, depth = left.pop()
            if place >= 0:
                depths.append(depth)
                order.append(place)
            called = []
            below = last[place]
            while below >= 0:
                called.append(below)
                below = earlier[below]
            called.sort(key=lambda place: names[self._name[place]], reverse=True)
            left += [(each, depth + 1) for each in called]
        own = (self._own[place] for place in order)
        return Tree(names, depths, array("i", (self._name[place] for place in order)), array("q", own))

    def _begin(self, line: str) -> None:
        head = _HEAD.match(line)
        if head is None:
            return
        self._program = (clean(head[1]), head[2] == "0")
        if head[3].strip():
            self._frames.append(self._function(head[3]))

    def _function(self, line: str) -> str:
        name = _function_of(line)
        if len(self._remembered) >= _MOST_LINES:
            self._remembered.clear()
        self._remembered[line] = name
        return name

    def _count(self, program: str, stack: Sequence[str]) -> None:
        place = -1
        for name in (program, *stack):
            below = self._place(place, name)
            if below is None:
                self.cut += 1
                place = place if place >= 0 else self._new_place(-1, self._number(OTHERS))
                break
            place = below
        self._own[place] += 1

    def _place(self, caller: int, name: str) -> Optional[int]:
        number = self._names.get(name)
        if number is None:
            if len(self._names) >= self._most_names:
                return None
            number = self._number(name)
        place = self._places.get((caller + 1) << 20 | number)
        if place is None and len(self._own) < self._most_nodes:
            place = self._new_place(caller, number)
        return place

    def _number(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))

    def _new_place(self, caller: int, number: int) -> int:
        place = self._places.setdefault((caller + 1) << 20 | number, len(self._own))
        if place == len(self._own):
            self._callers.append(caller)
            self._name.append(number)
            self._own.append(0)
        return place


def _function_of(line: str) -> str:
    frame = _FRAME.match(line.rstrip().replace(" (deleted))", ")"))
    if frame is None:
        return UNKNOWN
    address, name, binary = frame.groups()
    in_kernel = len(address) == 16 and address[0] in "89abcdef"
    is_jit = binary.startswith(("/tmp/perf-", "//anon", "[anon", "/memfd:"))
    name = _OFFSET.sub("", name)
    if name == UNKNOWN:
        if in_kernel:
            return _NAMELESS_KERNEL
        return (
            JIT
            if is_jit
            else UNKNOWN
            if binary in ("", UNKNOWN)
            else f"[{clean(binary.rpartition('/')[2].strip('[]'))}]"
        )
    return clean(name) + (KERNEL_MARK if in_kernel else JIT_MARK if is_jit else "")


def clean(name: str) -> str:
    """A name of a host in one line, without what separates names."""
    return clipped(printable(name), LONGEST_NAME).replace(";", ":")


def tree_of(plain: Any, most: int = MOST_NODES) -> Tree:
    """The tree out of JSON that a host sent. Raises ValueError for anything else."""
    if not isinstance(plain, Mapping):
        raise ValueError("no tree")
    names, columns = plain.get("names"), [plain.get(column) or [] for column in ("depth", "name", "own")]
    if not isinstance(names, list) or len(names) > MOST_NAMES + 1 or not all(isinstance(name, str) for name in names):
        raise ValueError("names")
    for column in columns:
        if not isinstance(column, list) or len(column) > most + 1 or not all(map(_is_count, column)):
            raise ValueError("columns")
    if len({len(column) for column in columns}) > 1:
        raise ValueError("columns")
    tree = Tree([clean(name) for name in names], *columns)
    before = -1
    for depth, name, own in zip(tree.depth, tree.name, tree.own):
        if not (0 <= depth <= min(before + 1, _MOST_FRAMES) and 0 <= name < len(names) and 0 <= own < 2**53):
            raise ValueError("a place")
        before = depth
    return tree


def _is_count(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
