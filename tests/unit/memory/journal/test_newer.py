# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An older controller on a host tuned by a newer one changes and loses nothing, and says which version to use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable, Dict

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.command import main as command
from ansible_collections.nearmetal.ec2.plugins.module_utils._version import VERSION
from ansible_collections.nearmetal.ec2.plugins.modules import clocksource, restore, tune

from tests.support.fake_kernel import FakeKernel
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
JOURNAL = "var/lib/nearmetal/journal.json"
ENTRY = {
    "concern": "cooling",
    "knob": "fans",
    "original": None,
    "ours": ["60"],
    "boot_id": "11111111-2222-3333-4444-555555555555",
}
PLACES = [
    ("cooling.fans", "left"),
    ("files", "/etc/udev/rules.d/91-nearmetal-cooling.conf"),
    ("sysctl", "vm.laptop_mode"),
]


@pytest.fixture
def host(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path, files_of("xen_hvm"))


def add(host: FakeKernel, what: str, where: str, **changes: Any) -> None:
    """What a newer nearmetal writes beside our entries."""
    place = Path(host.root) / JOURNAL
    journal = {**json.loads(place.read_text()), "nearmetal": "99.1.0", **changes}
    journal["entries"].append({**ENTRY, "what": what, "where": where})
    place.write_text(json.dumps(journal))


def files(host: FakeKernel) -> Dict[str, bytes]:
    root = Path(host.root)
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and path.name != "lock"}


@pytest.mark.parametrize(("what", "where"), PLACES)
def test_whatever_is_run_says_which_version_to_use(
    host: FakeKernel, call: Call, capsys: pytest.CaptureFixture[str], what: str, where: str
) -> None:
    call(clocksource.main, host, source="tsc")
    add(host, what, where)
    before = files(host)
    for main, options in (
        (tune.main, {"concerns": {"clocksource": {"source": "hpet"}}}),
        (clocksource.main, {"state": "restored"}),
        (restore.main, {}),
    ):
        failed = call(main, host, **options)
        assert failed["failed"]
        assert not failed["mistake"], "another agent is no mistake in options"
        assert f"/{JOURNAL} was written by nearmetal 99.1.0, this is nearmetal {VERSION}" in failed["msg"]
        assert "nothing was changed; use nearmetal 99.1.0 or a newer one" in failed["msg"]
        assert (where if what in ("files", "sysctl") else what) in failed["msg"]
        assert "\n" not in failed["msg"]
    for arguments in (["restore"], ["status"]):
        assert command(arguments, host) == 1
        assert "use nearmetal 99.1.0" in capsys.readouterr().err
    assert files(host) == before


def test_a_newer_version_that_set_nothing_new_is_no_obstacle(host: FakeKernel, call: Call) -> None:
    untouched = files(host)
    call(clocksource.main, host, source="tsc")
    place = Path(host.root) / JOURNAL
    place.write_text(place.read_text().replace(f'"{VERSION}"', '"99.1.0"'))
    assert "99.1.0" in place.read_text()
    assert "failed" not in call(clocksource.main, host, source="hpet")
    assert "failed" not in call(restore.main, host)
    assert files(host) == untouched


@pytest.mark.parametrize("writer", [VERSION, None, "newest", 7])
def test_an_unknown_place_of_no_newer_version_is_damage_to_its_own_concern(
    host: FakeKernel, call: Call, writer: object
) -> None:
    untouched = files(host)
    call(clocksource.main, host, source="tsc")
    add(host, "cooling.fans", "left", nearmetal=writer)
    failed = call(restore.main, host)
    assert "an original of cooling isn't what nearmetal wrote (nearmetal has no lever 'cooling.fans')" in failed["msg"]
    assert list(failed["errors"]) == ["cooling"]
    left = {path: data for path, data in files(host).items() if untouched.get(path) != data}
    assert {Path(path).name for path in left} == {"failed.json", "journal.json"}
    [entry] = json.loads((Path(host.root) / JOURNAL).read_text())["entries"]
    assert entry["what"] == "cooling.fans"


def test_a_journal_of_another_format_names_it(host: FakeKernel, call: Call) -> None:
    call(clocksource.main, host, source="tsc")
    add(host, "cooling.fans", "left", version=2)
    before = files(host)
    failed = call(restore.main, host)
    assert f"/{JOURNAL} has version 2, this nearmetal writes version 1: nothing was changed" in failed["msg"]
    assert files(host) == before
