# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What perf script prints is counted as another program counts it, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile import folding
from ansible_collections.nearmetal.ec2.plugins.module_utils._profile.folding import Folder, Tree, tree_of

RECORDED = Path(__file__).with_name("recorded")
# No two samples have the same functions in the same places, and there are more names than are kept.
WORST = f"""
import sys
sys.path[:0] = {sys.path!r}
from {folding.__name__} import Folder
from {folding.__name__[: -len(".folding")]} import profiling

def stream(samples):
    for sample in range(samples):
        yield f"program{{sample % 999}}  7 [000] cpu-clock: \\n"
        for depth in range(12):
            name = f"function_of_some_length_{{sample * 7919 * (depth + 1) % 31000}}"
            yield f"\\t    {{sample:x}}{{depth:x}} {{name}} (/usr/lib/library.so)\\n"
        yield "\\n"

folder = Folder()
folder.add(stream(60000))
tree = folder.tree()
text = profiling.packed(tree)
most = int(open("/proc/self/status").read().partition("VmHWM:")[2].split()[0]) // 1024
print(most, folder.samples, folder.cut, sum(tree.own), len(tree.own))
"""


def folded(text: str, **limits: int) -> Folder:
    folder = Folder(**limits)
    folder.add(text.splitlines(keepends=True))
    folder.end()
    return folder


def counted(folder: Folder) -> Dict[str, int]:
    lines = [line.rpartition(" ") for line in folder.tree().lines()]
    counts = {stack: int(count) for stack, _space, count in lines}
    assert len(counts) == len(lines)
    return counts


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("*.txt")))
def test_stacks_are_those_that_awk_counts(name: str) -> None:
    script = Path(__file__).with_name("fold.awk")
    done = subprocess.run(["awk", "-f", str(script), str(RECORDED / name)], stdout=subprocess.PIPE, check=True)
    lines = [line.rpartition(" ") for line in done.stdout.decode().splitlines()]
    expected = {stack: int(count) for stack, _space, count in lines}
    folder = folded((RECORDED / name).read_text("utf-8"))
    assert {**counted(folder), "idle": folder.idle} == expected
    assert folder.samples == sum(expected.values()) - expected["idle"] > 0


def test_names_are_as_a_reader_expects_them() -> None:
    folder = folded((RECORDED / "odd.txt").read_text("utf-8"))
    assert counted(folder) == {
        "Web Content;recurse;recurse;operator(): first(char);std::map<int, std::vector<char> >::find(int const&)": 1,
        "java;[libjvm.so];[jit];Interpreter_[j]": 1,
        "java;[jit]": 1,
        "kworker/0:1-events;[kernel]_[k]": 1,
        "swapper;native_safe_halt_[k];e1000_clean_[k]": 1,
    }
    assert (folder.samples, folder.idle) == (5, 2)
    shares = folder.tree().shares()
    assert (shares["recurse"], shares["java"], shares["[jit]"]) == (0.2, 0.4, 0.4), "a function counts once per sample"
    assert folder.tree().shares(own=True)["[jit]"] == 0.2


def test_the_worst_stream_takes_no_more_than_64_mib() -> None:
    done = subprocess.run([sys.executable, "-c", WORST], stdout=subprocess.PIPE, check=True)
    most, samples, cut, kept, places = map(int, done.stdout.split())
    assert most <= 64
    assert samples == kept == 60000, "what there is no room for isn't lost"
    assert 0 < cut < samples
    assert places <= folding.MOST_NODES + 1


@pytest.mark.parametrize(
    "name", ["a;b 7", "x" * 5000, "\x1b[31mred\x07\x00", "\u202egnp\u2028", "日本 \udce4", "</script><b>", "f(int) 12"]
)
def test_a_hostile_name_is_a_name(name: str) -> None:
    folder = folded(f"a  1 [000] cpu-clock: \n\t    1 {name} (/b)\n\t    2 main (/b)\n\n")
    [line] = folder.tree().lines()
    stack, _space, count = line.rpartition(" ")
    assert (stack.split(";")[:2], count, len(stack.split(";"))) == (["a", "main"], "1", 3)
    assert line.isprintable()
    assert len(line) < 200


def test_what_has_no_room_counts_for_its_caller() -> None:
    text = "".join(f"a  1 [000] cpu-clock: \n\t    1{leaf} f{leaf} (/b)\n\t    2 main (/b)\n\n" for leaf in range(6))
    folder = folded(text, nodes=4)
    assert counted(folder) == {"a;main": 4, "a;main;f0": 1, "a;main;f1": 1}
    assert folder.cut == 4
    assert counted(folded(text + "b  2 [000] cpu-clock: \n\t    2 main (/b)\n\n", nodes=4))["[others]"] == 1


def test_a_tree_arrives_as_it_was_sent() -> None:
    tree = folded((RECORDED / "odd.txt").read_text("utf-8")).tree()
    sent = {name: list(column) for name, column in tree._asdict().items()}
    assert list(tree_of(sent).lines()) == list(tree.lines())


TREE: Dict[str, List[Any]] = {"names": ["a", "b"], "depth": [0, 1], "name": [0, 1], "own": [1, 2]}


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {**TREE, "names": ["a"]},
        {**TREE, "names": ["a", 1]},
        {**TREE, "depth": [1, 2]},
        {**TREE, "depth": [0, 2]},
        {**TREE, "depth": [0, True]},
        {**TREE, "own": [1, -1]},
        {**TREE, "own": [1]},
        {**TREE, "own": "12"},
    ],
)
def test_a_tree_of_another_form_is_refused(wrong: Any) -> None:
    assert isinstance(tree_of(TREE), Tree)
    with pytest.raises(ValueError, match=r"tree|names|columns|place"):
        tree_of(wrong)
