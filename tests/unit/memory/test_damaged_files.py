# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every file that nearmetal keeps on a host, damaged in every way: a sentence names it, and nothing is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
JOURNAL, WANTED = "/var/lib/nearmetal/journal.json", "/var/lib/nearmetal/wanted.json"
FINGERPRINT, ASIDE = "/run/nearmetal/fingerprint", "/run/nearmetal/journal.json"
RECORD, ARMED = "/var/lib/nearmetal/boot_arguments.json", "/var/lib/nearmetal/dead-man.json"
AGENT, BAKED = "/usr/local/lib/nearmetal/nearmetal.pyz", "/run/nearmetal/baked"
PLANNED = {"clocksource": {"source": "auto"}, "hugepages": {"thp": "never"}}
ARGUMENTS = {"clocksource": {"tsc_reliable": "enabled"}, "hugepages": {"thp": "never"}}
# Without these nobody knows what to bring back or what is wanted.
MEMORY = (JOURNAL, WANTED, ASIDE, RECORD)
OTHERS = (ARMED, FINGERPRINT, BAKED, AGENT)


def empty(place: Path) -> None:
    place.write_bytes(b"")


def cut(place: Path) -> None:
    place.write_bytes(place.read_bytes()[: place.stat().st_size // 2] if place.exists() else b"{")


def binary(place: Path) -> None:
    place.write_bytes(bytes(range(256)) * 64)


def other_json(place: Path) -> None:
    place.write_text('{"apiVersion": "v1", "kind": "List", "items": []}')


def a_list(place: Path) -> None:
    place.write_text("[[], 1, null]")


def wrong_types(place: Path) -> None:
    names = ("version", "entries", "concerns", "arguments", "actions", "boot_id", "instance", "before")
    place.write_text(json.dumps(dict.fromkeys(names, 1)))


def deep(place: Path) -> None:
    place.write_text("[" * 200000)


def of_the_future(place: Path) -> None:
    content = {"version": 99, "nearmetal": "99.0.0", "entries": [{"new": "x" * 1000}], "concerns": {}}
    place.write_text(json.dumps(content))


def a_folder(place: Path) -> None:
    place.unlink(missing_ok=True)
    (place / "inside").mkdir(parents=True)


def a_link(place: Path) -> None:
    other = place.with_name("elsewhere")
    other.write_bytes(place.read_bytes() if place.exists() else b"")
    place.unlink(missing_ok=True)
    place.symlink_to(other)


def huge(place: Path) -> None:
    with place.open("wb") as stream:
        stream.truncate(64 << 20)


DAMAGE = (empty, cut, binary, other_json, a_list, wrong_types, deep, of_the_future, a_folder, a_link, huge)


def tuned(root: Path, path: str, call: Call) -> FakeKernel:
    """A host that was tuned, and has the file if it has it at all."""
    host: FakeKernel = debian(root) if path == RECORD else fresh(root, "xen_hvm")
    result = call(tune.main, host, concerns=concerns(path))
    assert "failed" not in result, result["msg"]
    assert command.main(["reapply"], host) == 0
    place_of(host, path).parent.mkdir(parents=True, exist_ok=True)
    return host


def concerns(path: str) -> Dict[str, Any]:
    return ARGUMENTS if path == RECORD else PLANNED


def place_of(host: FakeKernel, path: str) -> Path:
    return Path(host.root) / path.lstrip("/")


def damaged(host: FakeKernel, path: str) -> Iterator[str]:
    """The file in each state of damage; as it was in between."""
    place = place_of(host, path)
    original = place.read_bytes() if place.exists() else None
    for damage in DAMAGE:
        damage(place)
        yield damage.__name__
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        if original is not None:
            place.write_bytes(original)


def refusals(host: FakeKernel, path: str, call: Call, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """What each run that fails says; no run ends otherwise."""
    for main, options in ((tune.main, {"concerns": concerns(path)}), (restore.main, {"concerns": ["hugepages"]})):
        result = call(main, host, check=True, **options)
        yield result["msg"] if result.get("failed") else ""
        result = call(main, host, **options) if main is tune.main else result
        yield result["msg"] if result.get("failed") else ""
    for word in ("status", "plan", "reapply"):
        capsys.readouterr()
        failed = command.main([word], host)
        said = capsys.readouterr()
        yield said.err.strip() if failed else ""


def helps(sentence: str, path: str) -> bool:
    """Whether it names the file, and says what to do."""
    return path in sentence and len(sentence) <= 300 and any(word in sentence for word in ("move", "remove", "use the"))


@pytest.mark.parametrize("path", MEMORY)
def test_a_damaged_memory_stops_everything_and_loses_nothing(
    path: str, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, path, call)
    before = {name: place_of(host, name).read_bytes() for name in MEMORY if place_of(host, name).exists()}
    for damage in damaged(host, path):
        place = place_of(host, path)
        content = place.read_bytes() if place.is_file() else b""
        for sentence in refusals(host, path, call, capsys):
            assert helps(sentence, path), f"{damage}: {sentence!r}"
        assert (place.read_bytes() if place.is_file() else b"") == content, damage
    assert before == {name: place_of(host, name).read_bytes() for name in MEMORY if place_of(host, name).exists()}
    assert "failed" not in call(restore.main, host)
    assert "[madvise]" in place_of(host, "/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    assert not place_of(host, JOURNAL).exists()


@pytest.mark.parametrize("path", OTHERS)
def test_another_damaged_file_is_made_anew_or_named(
    path: str, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, path, call)
    for damage in damaged(host, path):
        for sentence in refusals(host, path, call, capsys):
            assert not sentence or helps(sentence, path), f"{damage}: {sentence!r}"
    assert "failed" not in call(restore.main, host)
    assert "[madvise]" in place_of(host, "/sys/kernel/mm/transparent_hugepage/enabled").read_text()
