# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cache is complete or absent, built once, and never blocks another run."""

from __future__ import annotations

import io
import threading
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from lab import cache
from lab.error import LabError
from lab.progress import Progress


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NEARMETAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def quiet() -> Progress:
    return Progress(io.StringIO())


def fill(folder: Path) -> None:
    (folder / "a").write_text("a", encoding="utf-8")


def test_an_entry_is_built_once() -> None:
    built: list[Path] = []

    def build(folder: Path) -> None:
        built.append(folder)
        fill(folder)

    first = cache.obtain("things", "k", build, quiet())
    assert cache.obtain("things", "k", build, quiet()) == first
    assert len(built) == 1
    assert (first / "a").read_text(encoding="utf-8") == "a"


@pytest.mark.parametrize("failure", [LabError("no"), KeyboardInterrupt(), OSError(28, "No space left on device")])
def test_a_failed_build_leaves_nothing(own_cache: Path, failure: BaseException) -> None:
    def build(folder: Path) -> None:
        fill(folder)
        raise failure

    with pytest.raises((LabError, KeyboardInterrupt)):
        cache.obtain("things", "k", build, quiet())
    assert list((own_cache / "things").iterdir()) == []
    assert (cache.obtain("things", "k", fill, quiet()) / "a").exists()


def test_a_full_disk_is_reported_in_one_sentence_that_says_what_to_do() -> None:
    def build(folder: Path) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(LabError, match="No space left on device; free space there or set NEARMETAL_CACHE"):
        cache.obtain("things", "k", build, quiet())


def test_leftovers_of_a_killed_run_are_removed(own_cache: Path) -> None:
    stale = own_cache / "things" / ".k.123"
    stale.mkdir(parents=True)
    cache.obtain("things", "k", fill, quiet())
    assert [path.name for path in (own_cache / "things").iterdir()] == ["k"]


def test_a_second_run_waits_for_the_first_and_takes_its_entry() -> None:
    started, go = threading.Event(), threading.Event()
    output = io.StringIO()
    taken: list[Path] = []

    def slow(folder: Path) -> None:
        fill(folder)
        started.set()
        go.wait()

    def never(folder: Path) -> None:
        raise AssertionError("built twice")

    first = threading.Thread(target=lambda: taken.append(cache.obtain("things", "k", slow, quiet())))
    second = threading.Thread(target=lambda: taken.append(cache.obtain("things", "k", never, Waiting(output, go))))
    first.start()
    started.wait()
    second.start()
    second.join()
    first.join()
    assert taken[0] == taken[1]
    assert "waiting for the things that another run is building" in output.getvalue()


class Waiting(Progress):
    """Lets the first run go on as soon as the second one has said that it waits."""

    def __init__(self, stream: io.StringIO, go: threading.Event) -> None:
        super().__init__(stream)
        self._go = go

    def step(self, text: str) -> AbstractContextManager[None]:
        self._go.set()
        return super().step(text)


def test_a_cache_key_depends_on_every_input(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("1", encoding="utf-8")
    keys = {cache.key("a", ["b"]), cache.key("ab", []), cache.key("a", ["c"]), cache.key(cache.sources(file))}
    file.write_text("2", encoding="utf-8")
    assert len(keys | {cache.key(cache.sources(file))}) == 5
