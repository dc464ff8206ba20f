# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every file that nearmetal keeps on a host, damaged in every way: a sentence names it, and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from pathlib import Path
from typing import Any, Callable, Dict, Iterator

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._host import store
from ansible_collections.nearmetal.ec2.plugins.module_utils._host.host import WritableHost
from ansible_collections.nearmetal.ec2.plugins.modules import restore, tune

from tests.support.boot_trees import debian
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh
from tests.support.hosts import files_of

Call = Callable[..., Dict[str, Any]]
JOURNAL, WANTED = "/var/lib/nearmetal/journal.json", "/var/lib/nearmetal/wanted.json"
FINGERPRINT, ASIDE = "/run/nearmetal/fingerprint", "/run/nearmetal/journal.json"
RECORD, ARMED = "/var/lib/nearmetal/boot_arguments.json", "/var/lib/nearmetal/dead-man.json"
AGENT, BAKED = "/usr/local/lib/nearmetal/nearmetal.pyz", "/run/nearmetal/baked"
PLANNED = {"clocksource": {"source": "auto"}, "hugepages": {"thp": "never"}}
ARGUMENTS = {"clocksource": {"tsc_reliable": "enabled"}, "hugepages": {"thp": "never"}}
# Without these files, restore doesn't know the original values.
ORIGINALS = (JOURNAL, ASIDE)
MEMORY = (*ORIGINALS, WANTED, RECORD)
OTHERS = (ARMED, FINGERPRINT, BAKED, AGENT)
NEEDED = (FINGERPRINT, AGENT)  # by the unit


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
    """A tuned host with the file, if it can have the file."""
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
            place.parent.mkdir(exist_ok=True)  # a restore may have removed it
            place.write_bytes(original)


def commanded(host: FakeKernel, word: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The message of a failing command on the host; empty if it succeeds."""
    capsys.readouterr()
    failed = command.main([word], host)
    output = capsys.readouterr()
    return f"{output.out} {output.err}" if failed else ""


def helps(sentence: str, path: str) -> bool:
    """Whether it names the file, and says what to do."""
    return path in sentence and len(sentence) <= 300 and any(word in sentence for word in ("move", "remove", "use the"))


def thp(host: FakeKernel) -> str:
    return place_of(host, "/sys/kernel/mm/transparent_hugepage/enabled").read_text().strip()


def memory(host: FakeKernel) -> Dict[str, bytes]:
    places = {path: place_of(host, path) for path in MEMORY}
    return {path: place.read_bytes() for path, place in places.items() if place.is_file()}


def taken_back(host: FakeKernel, call: Call) -> None:
    assert "failed" not in call(restore.main, host)
    assert "[madvise]" in thp(host)
    assert not place_of(host, JOURNAL).exists()


@pytest.mark.parametrize("path", ORIGINALS)
def test_with_damaged_originals_nothing_is_changed_and_an_audit_works(
    path: str, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, path, call)
    other = {**PLANNED, "hugepages": {"thp": "always"}}
    for damage in damaged(host, path):
        before = memory(host)
        for main, options in ((tune.main, {"concerns": other}), (restore.main, {}), (restore.main, {"concerns": []})):
            assert helps(call(main, host, **options)["msg"], path), damage
        assert helps(commanded(host, "reapply", capsys), path), damage
        for word in ("status", "plan"):
            assert path in " ".join(commanded(host, word, capsys).split()), damage
        audited = call(tune.main, host, check=True, concerns=other)
        if damage == "of_the_future":
            assert helps(audited["msg"], path)
        else:
            assert helps(audited["errors"]["journal"], path), damage
            statuses = {finding["knob"]: finding["status"] for finding in audited["findings"]}
            assert (statuses["thp"], statuses["source"]) == ("would_change", "ok"), damage
        assert "[never]" in thp(host)
        assert memory(host) == before, damage
    taken_back(host, call)


NO_ENTRY: Dict[str, Dict[str, Any]] = {
    "another lever": {"what": "clock.hands"},
    "a place that it has not": {"where": "../../etc"},
    "an original that it can't have": {"original": ["tsc"]},
    "no value of ours": {"ours": []},
    "no boot": {"boot_id": 7},
}


@pytest.mark.parametrize("change", NO_ENTRY.values(), ids=NO_ENTRY)
def test_a_damaged_entry_of_the_journal_stops_only_its_concern(
    change: Dict[str, Any], tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, JOURNAL, call)
    place = place_of(host, JOURNAL)
    content = json.loads(place.read_text())
    good = next(entry for entry in content["entries"] if entry["what"] == "clock.current")
    bad = {**good, **change}
    content["entries"][content["entries"].index(good)] = bad
    place.write_text(json.dumps(content))
    for main, options in ((tune.main, {"concerns": {**PLANNED, "hugepages": {"thp": "always"}}}), (restore.main, {})):
        for check in (True, False):
            result = call(main, host, check=check, **options)
            assert list(result["errors"]) == ["clocksource"], result["msg"]
            assert helps(result["errors"]["clocksource"], JOURNAL)
        assert ("[always]" if main is tune.main else "[madvise]") in thp(host)
        assert bad in json.loads(place.read_text())["entries"], "it is kept for whoever can mend it"
    assert place_of(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text() == "tsc\n"
    for word in ("status", "plan", "reapply"):
        assert JOURNAL in " ".join(commanded(host, word, capsys).split()), word
    content = json.loads(place.read_text())
    content["entries"][content["entries"].index(bad)] = good
    place.write_text(json.dumps(content))
    taken_back(host, call)
    assert place_of(host, "/sys/devices/system/clocksource/clocksource0/current_clocksource").read_text() == "xen\n"


def test_a_damaged_wanted_file_stops_only_changes_that_it_would_store(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, WANTED, call)
    for damage in damaged(host, WANTED):
        before = memory(host)
        wanted = {**PLANNED, "hugepages": {"thp": "always"}, "kernel_check": {"minimum_kernel": "3.10"}}
        for check in (True, False):
            result = call(tune.main, host, check=check, concerns=wanted)
            if damage == "of_the_future":
                assert helps(result["msg"], WANTED)
                continue
            assert list(result["errors"]) == ["clocksource", "hugepages", "wanted"], damage
            assert helps(result["errors"]["wanted"], WANTED), damage
            found = {(finding["concern"], finding["status"]) for finding in result["findings"]}
            assert ("hugepages", "would_change") in found, damage
            assert "kernel_check" in dict(found), damage
        assert memory(host) == before, damage
        for word in ("status", "plan", "reapply"):
            assert WANTED in " ".join(commanded(host, word, capsys).split()), damage
    a_list(place_of(host, WANTED))
    back = call(restore.main, host)
    assert "[madvise]" in thp(host), "the way back needs the journal alone"
    assert list(back["errors"]) == ["wanted"]
    assert place_of(host, AGENT).exists(), "nobody knows whether something still needs the unit"
    place_of(host, WANTED).unlink()
    taken_back(host, call)
    assert not place_of(host, AGENT).exists()


GOOD = {"options": {}, "by": {}, "replan": True, "run": "tune", "version": "0.1.0", "at": "2026-01-02T03:04:05Z"}
NO_CONCERN: Dict[str, Any] = {
    "null": None,
    "a list": [],
    "no options": {"by": {}},
    "options that are a list": {**GOOD, "options": []},
    "a run that draws": {**GOOD, "run": "\u001b[2J"},
    "wanted by nobody": {**GOOD, "by": {"source": "me"}},
    "a version of another form": {**GOOD, "version": 3},
    "no time": {**GOOD, "at": "yesterday"},
    "learnt and not there": {**GOOD, "learnt": ["source"]},
    "decisions without reasons": {**GOOD, "remembered": [["mtu", "0000:00:05.0"]]},
    "a reason that draws": {**GOOD, "remembered": [["mtu", "0000:00:05.0", "\u001b[2J"]]},
}


@pytest.mark.parametrize("content", NO_CONCERN.values(), ids=NO_CONCERN)
def test_a_damaged_part_of_the_wanted_file_stops_only_its_concern(
    content: object, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, WANTED, call)
    place = place_of(host, WANTED)
    stored = json.loads(place.read_text())
    stored["concerns"]["clocksource"] = content
    place.write_text(json.dumps(stored))
    host.write_value("/sys/kernel/mm/transparent_hugepage/enabled", "always\n")
    output = commanded(host, "reapply", capsys)
    assert "[never]" in thp(host)
    assert f"{WANTED}: what is stored of clocksource" in output
    assert "hugepages: as wanted" not in output
    assert f"{WANTED}:" in commanded(host, "status", capsys)
    done = call(tune.main, host, concerns={"hugepages": {"thp": "always"}})
    assert "failed" not in done, done["msg"]
    assert json.loads(place.read_text())["concerns"]["clocksource"] == content, "it is kept for whoever can read it"
    done = call(tune.main, host, concerns=PLANNED)
    assert "failed" not in done, done["msg"]
    assert commanded(host, "status", capsys) == "", "what a new run wants is stored again"
    taken_back(host, call)
    assert not place.exists()


def test_a_damaged_record_of_kernel_arguments_stops_only_concerns_with_arguments(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, RECORD, call)
    before = memory(host)
    other = {**ARGUMENTS, "hugepages": {"thp": "always"}}
    for damage in damaged(host, RECORD):
        for main, options in ((tune.main, {"concerns": other}), (restore.main, {}), (tune.main, {"concerns": other})):
            for check in (True, False):
                result = call(main, host, check=check, **options)
                assert list(result["errors"]) == ["clocksource"], f"{damage}: {result['msg']}"
                assert helps(result["errors"]["clocksource"], RECORD), damage
            assert ("[always]" if main is tune.main else "[madvise]") in thp(host)
        for word in ("status", "plan", "reapply"):
            assert RECORD in " ".join(commanded(host, word, capsys).split()), damage
    assert memory(host)[RECORD] == before[RECORD]
    taken_back(host, call)
    assert "tsc=reliable" not in place_of(host, "/boot/grub/grub.cfg").read_text()


@pytest.mark.parametrize("path", OTHERS)
def test_another_damaged_file_is_made_again_or_named(
    path: str, tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str]
) -> None:
    host = tuned(tmp_path, path, call)
    for damage in damaged(host, path):
        for main, options in ((tune.main, {"concerns": PLANNED}), (restore.main, {"concerns": ["clocksource"]})):
            for check in (True, False):
                result = call(main, host, check=check, **options)
                hindered = path in NEEDED and helps(result["msg"], path)
                assert hindered or not result.get("failed"), f"{damage}: {result['msg']}"
        for word in ("status", "plan", "reapply"):
            output = commanded(host, word, capsys).strip()
            if word == "status" and re.search("Failed in its last run: unit|A file of nearmetal can't be read", output):
                output = " ".join(output.split("\n\n")[1].split())
            assert not output or (path in NEEDED and helps(output, path)), f"{damage}: {output}"
    taken_back(host, call)


@pytest.mark.parametrize("rebooted", [False, True])
def test_a_link_in_place_of_our_file_stops_only_its_own_concern(tmp_path: Path, call: Call, rebooted: bool) -> None:
    somaxconn, thp = "/proc/sys/net/core/somaxconn", "/sys/kernel/mm/transparent_hugepage/enabled"
    host = FakeKernel(tmp_path, files_of("nitro", {somaxconn: "4096\n", thp: "[always] madvise never\n"}))
    call(tune.main, host, concerns={"network_stack": {"somaxconn": 8192}, "hugepages": {"thp": "never"}})
    [place] = [path for path in (tmp_path / "etc/sysctl.d").iterdir() if "somaxconn" in path.read_text()]
    text = place.read_text()
    a_link(place)
    if rebooted:
        host.reboot("22222222-2222-3333-4444-555555555555")
    back = call(restore.main, host)
    assert list(back["errors"]) == ["network_stack"]
    assert f"/etc/sysctl.d/{place.name} is a symbolic link" in back["errors"]["network_stack"]
    assert "move the link away" in back["errors"]["network_stack"]
    assert place.is_symlink()
    assert place.read_text() == text
    assert (tmp_path / thp.lstrip("/")).read_text() == "[always] madvise never\n"
    kept = json.loads((tmp_path / JOURNAL.lstrip("/")).read_text())["entries"]
    assert "network_stack" in {entry["concern"] for entry in kept}
    assert "hugepages" not in {entry["concern"] for entry in kept}
    place.unlink()
    assert "failed" not in call(restore.main, host)
    assert (tmp_path / somaxconn.lstrip("/")).read_text() == "4096\n"
    assert not (tmp_path / JOURNAL.lstrip("/")).exists()


@pytest.mark.parametrize("name", ["nearmetal.service", "nearmetal.timer"])
@pytest.mark.parametrize("masked_first", [False, True])
def test_a_masked_unit_stops_no_concern_and_each_run_says_what_to_do(
    tmp_path: Path, call: Call, capsys: pytest.CaptureFixture[str], name: str, masked_first: bool
) -> None:
    source = tmp_path / "sys/devices/system/clocksource/clocksource0/current_clocksource"
    wanted = {"clocksource": {"source": "auto"}}
    host = FakeKernel(tmp_path, files_of("xen_hvm"))
    mask, remedy = tmp_path / "etc/systemd/system" / name, f"run `systemctl unmask {name}`, and run again"
    if not masked_first:
        call(tune.main, host, concerns=wanted)
        mask.unlink()
    mask.symlink_to("/dev/null")
    for check in (True, False):
        assert remedy in call(tune.main, host, check=check, concerns=wanted)["errors"]["unit"]
    assert source.read_text() == "tsc\n"
    assert remedy in " ".join(commanded(host, "status", capsys).split())
    back = call(restore.main, host)
    assert source.read_text() == "xen\n"
    assert masked_first or remedy in back["errors"]["unit"]
    mask.unlink()
    assert "failed" not in call(restore.main, host)
    assert not list(tmp_path.rglob("nearmetal.*")), "nothing of the unit is left"


@pytest.mark.parametrize("kind", [stat.S_IFIFO, stat.S_IFSOCK], ids=["pipe", "socket"])
def test_what_is_no_regular_file_is_reported_with_what_to_do(tmp_path: Path, kind: int) -> None:
    host = WritableHost(str(tmp_path))
    for path in (WANTED, store.LOCK):
        host_path = Path(host.real(path))
        host_path.parent.mkdir(parents=True)
        os.mknod(host_path, 0o600 | kind)
        with pytest.raises(NearmetalError, match=rf"^{path} is not a regular file: remove it and run again$"):
            store.read_file(host, path)
    with pytest.raises(NearmetalError, match=r"is not a regular file"), store.lock(host):
        pass


def test_an_empty_folder_that_a_killed_restore_left_is_removed_by_the_next(tmp_path: Path, call: Call) -> None:
    host = fresh(tmp_path, "nitro_big")
    (tmp_path / "var/lib/nearmetal").mkdir(mode=0o700, parents=True)
    assert not call(restore.main, host)["changed"]
    assert not (tmp_path / "var/lib/nearmetal").exists()
