# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Another process puts links in our way while we run: nothing is written where they lead, and no run ends unexplained.

At each call that opens, makes, renames or removes something in a folder, a link is put at that place right before.
NEARMETAL_LINKS=1 tries each call; without it the test takes one of several.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.boot_trees import debian
from tests.support.fresh_host import fresh

Call = Callable[..., Dict[str, Any]]
CALLS = ("open", "mkdir", "rename", "unlink", "link", "symlink", "rmdir")
# Native files and kernel arguments; what the unit plans, with its own files.
LIVES = {
    "files": (debian, {"clocksource": {"tsc_reliable": "enabled"}, "hugepages": {"thp": "never"}}),
    "unit": (lambda root: fresh(root, "xen_hvm"), {"clocksource": {"source": "auto"}, "hugepages": {"thp": "never"}}),
}
STEP = 1 if os.environ.get("NEARMETAL_LINKS") else 25


class Planter:
    """Counts the calls in folders, and puts a link in the way of one of them."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path, outside: Path, at: int) -> None:
        self.root, self.outside, self.at, self.count = str(root), outside, at, 0
        self.planted = ""
        for name in CALLS:
            patch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*places: Any, **more: Any) -> Any:
            folder = next((more[name] for name in ("dir_fd", "dst_dir_fd") if more.get(name) is not None), None)
            if folder is not None:
                self.count += 1
                if self.count == self.at:
                    name = places[1] if "dst_dir_fd" in more or call.__name__ == "symlink" else places[0]
                    self._plant(f"{os.readlink(f'/proc/self/fd/{folder}')}/{name}")
            return call(*places, **more)

        counted.__name__ = call.__name__
        return counted

    def _plant(self, path: str) -> None:
        if not path.startswith(self.root + "/"):
            return
        folder = os.path.isdir(path)
        if os.path.lexists(path):
            shutil.move(path, f"{path}.moved")
        Path(path).symlink_to(self.outside / ("folder" if folder else "file"))
        self.planted = path


def life(call: Call, kind: str, root: Path, outside: Path, at: int) -> "tuple[Planter, List[Any]]":
    """Tune and restore a host; before call number `at` a link is put in its way."""
    make, concerns = LIVES[kind]
    host: Any = make(root)
    results: List[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        planter = Planter(patch, root, outside, at)
        results.append(call(tune.main, host, concerns=concerns))
        results.append(call(restore.main, host))
    return planter, results


@pytest.mark.parametrize("kind", LIVES)
def test_no_run_writes_where_a_planted_link_leads(call: Call, tmp_path: Path, kind: str) -> None:
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    canary = outside / "file"
    canary.write_text("somebody's")
    canary.chmod(0o640)
    planter, results = life(call, kind, tmp_path / "plain", outside, at=0)
    assert [result.get("failed") for result in results] == [None, None], [result["msg"] for result in results]
    assert planter.count > 100
    planted = set()
    for at in range(1, planter.count + 1, STEP):
        root = tmp_path / str(at)
        attacked, results = life(call, kind, root, outside, at)
        assert (canary.read_text(), canary.stat().st_mode & 0o777) == ("somebody's", 0o640), attacked.planted
        assert list((outside / "folder").iterdir()) == [], attacked.planted
        for result in results:
            assert "Traceback" not in result["msg"], result
        planted.add(attacked.planted[len(str(root)) :])
        shutil.rmtree(root)
    assert len(planted) > 5, planted
