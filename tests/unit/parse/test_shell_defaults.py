# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of /etc/default/grub: bash shows the effect of an edit on every variable; a line that isn't edited is named."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import shell_defaults

L, D = "GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT"
VARIABLES = (L, D, "GRUB_TIMEOUT", "GRUB_TERMINAL", "X")

EDITED = {
    "plain": f'{D}="quiet"\n{L}="console=tty0"\n',
    "single quotes": f"{D}='quiet a=b'\n{L}='console=tty0'\n",
    "no newline at end": f'{D}="quiet"\n{L}="console=tty0"',
    "trailing comment": f'{D}="quiet" # mine\n{L}="console=tty0" # "quoted" comment\n',
    "trailing comment ending in quote": f'{L}="console=tty0" # was "quiet"\n{D}="quiet" # was "x"\n',
    "duplicates": f'{L}="a=1"\n{L}="b=2"\n{D}="c"\n{D}="d"\n',
    "double then single": f"{L}=\"a=1\"\n{L}='b=2'\n",
    "what a later line replaces": f'{L}+="a" \\\n b\n{L}="b=2"\n',
    "self reference": f'{L}="a=1"\n{L}="${L} b=2"\n',
    "braces reference": f'{L}="a=1"\n{L}="${{{L}}} b=2"\n',
    "default expansion": f'{L}="${{X:-a=1}}"\n',
    "escaped quotes": f'{L}="a=\\"x y\\""\n',
    "single in double": f"{L}=\"a='x y'\"\n",
    "double in single": f"{L}='a=\"x y\"'\n",
    "command substitution": f'{L}="a=$(echo 1)"\n{D}="b=`echo 2`"\n',
    "indented": f'  {L}="a=1"\n\t{D}="c"\n',
    "export": f'export {L}="a=1"\nexport {D}="c"\n',
    "condition behind it": f'{L}="a"\n{D}="c"\nif true; then\n X=1\nfi',
    "empty": f'{L}=""\n{D}=""\n',
    "backslash at eof": f'{L}="a=1"\n{D}="c"\nX="y"\\\n',
    "comment at eof": f'{L}="a=1"\n{D}="c"\n# the {L}=end',
    "return at end": f'{L}="a=1"\n{D}="c"\nreturn 0\n',
    "no UTF-8": f'# Gr\udcf6\udcdfe\n{L}="a=1"\n{D}="c"\n',
    "tabs and blanks after": f'{L}="a=1"  \t\n{D}="c"\t\n',
    "spaces inside": f'{L}="  a=1   b=2  "\n',
    "dollar literal": f'{L}="a=\\$x"\n',
    "odd quote": f'{L}="a=\'1"\n{D}="c=\'1"\n',
    "hash in value": f'{L}="a=#1 b"\n{D}="c=#2"\n',
    "concatenated": f'{L}="a=1"" b=2"\n{D}="c"" d"\n',
    "other lines in a function": f'f() {{\n X="zz"\n}}\n{L}="a=1"\n',
    "a quote over lines before it": f'X=\'\n{L}="in here"\n\'\n{L}="a"\n',
}
LEFT = {
    "no quotes": (f"{D}=quiet\n{L}=console=tty0\n", f"line 2: {L} isn't one quoted text, alone in its line"),
    "crlf": (f'X=1\r\n{L}="a"\r\n', f"line 2: {L} is in a line that ends in CR LF"),
    "two assignments in a line": (f'{L}="a" GRUB_TERMINAL="serial"\n', f"line 1: {L} isn't one quoted text"),
    "two with semicolon": (f'{L}="a"; GRUB_TERMINAL="serial"\n', f"line 1: {L} isn't one quoted text"),
    "two, ours last": (f'GRUB_TERMINAL="serial" {L}="a"\n', f"line 1: {L} is used for something else"),
    "continuation": (f'X=1\n{L}="console=tty0 \\\n nosmt"\n', f"line 2: {L} goes over several lines"),
    "several lines": (f'{L}="console=tty0\nnosmt"\n', f"line 1: {L} goes over several lines"),
    "+=": (f'{L}="a=1"\n{L}+=" b=2"\n', f"line 2: {L} is extended by +="),
    "used in another variable": (f'{L}="a=1"\n{D}="${{{L}}} d"\n', f"line 2: {L} is used for something else"),
    "in a condition": (f'if true; then\n{L}="a=1"\nfi\n', f"line 2: {L} is in a condition, a loop or a function"),
    "in a function": (f'{L}="a=1"\nf() {{\n {L}="zz"\n}}\n', f"line 3: {L} is in a condition, a loop or a function"),
    "in a here-document": (f'{L}="a=1"\n: <<EOF\n{L}="in here"\nEOF', "line 2 begins a here-document"),
    "read-only": (f'{L}="a=1"\nreadonly {L}\n', f"line 2: {L} is used for something else"),
    "dollar quote": (f"{L}=$'a=1 b'\n", f"line 1: {L} isn't one quoted text, alone in its line"),
    "a NUL": (f'{L}="a=1"\0\n', f"line 1: {L} isn't one quoted text, alone in its line"),
    "a quote without end": (f'{L}="a=1\nX=1\n', f"line 1: {L} goes over several lines"),
    "too long": ("#" * 70_000, "the file is longer than 64 KiB"),
}
NOTHING = {"absent": "X=1\n", "only a comment": f'#{L}="a"\n# {L}="c"\n', "only the other": f'{D}="a"\n', "nothing": ""}
UNFINISHED = {
    "crlf": ('X="y"\r\n', "line 1 ends in CR LF"),
    "backslash": ('X=1\nX="y"\\\n', "line 2 isn't complete"),
    "backslash without line's end": ('X="y" \\', "line 1 isn't complete"),
    "open quote": ('X=1\nX="y\nZ=1\n', "line 2 isn't complete"),
    "return": ("X=1\nreturn 0\nX=2\n", "line 2 ends the file early"),
}


def sourced(place: Path, text: str) -> Dict[str, str]:
    """The variables that bash reads from the file."""
    place.write_bytes(text.encode("utf-8", "surrogateescape"))
    script = "".join(f"{name}=; " for name in VARIABLES) + f". {place} >/dev/null 2>&1; "
    script += "".join(f'printf "%s\\0" "${name}"; ' for name in VARIABLES)
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    return dict(zip(VARIABLES, done.stdout.decode("utf-8", "surrogateescape").split("\0")))


@pytest.mark.parametrize("name", EDITED)
def test_an_edit_adds_one_word_and_changes_nothing_else(name: str, tmp_path: Path) -> None:
    text = EDITED[name]
    found = shell_defaults.find(text, L)
    assert found.obstacle == ""
    assert found.span is not None
    edited = text[: found.span[1]] + " tsc=reliable" + text[found.span[1] :]
    before = sourced(tmp_path / "grub", text)
    assert sourced(tmp_path / "grub", edited) == {**before, L: before[L] + " tsc=reliable"}


@pytest.mark.parametrize("name", LEFT)
def test_another_form_is_named_by_its_line(name: str) -> None:
    text, sentence = LEFT[name]
    assert shell_defaults.find(text, L).obstacle.startswith(sentence)


@pytest.mark.parametrize("name", NOTHING)
def test_a_file_that_does_not_set_it_is_no_obstacle(name: str) -> None:
    assert shell_defaults.find(NOTHING[name], L) == shell_defaults.Place()


@pytest.mark.parametrize("name", UNFINISHED)
def test_text_that_keeps_shells_from_reading_the_lines_after_it(name: str) -> None:
    text, sentence = UNFINISHED[name]
    assert shell_defaults.unfinished(text).startswith(sentence)


@pytest.mark.parametrize(
    "text", ["", "X=1", 'X="y"', "X='a\nb'\n", "# it's\n", "f() {\nreturn 0\n}\n", 'X="a\\"" # "\n']
)
def test_text_after_which_shells_read_the_next_lines(text: str) -> None:
    assert shell_defaults.unfinished(text) == ""
