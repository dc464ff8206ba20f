# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A capture comes from a stranger: whatever it holds, nothing outside the plan's own folder is written or read."""

from __future__ import annotations

import json
import os
import re
import struct
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Tuple

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent import command
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.capture import capture, record_key
from ansible_collections.nearmetal.ec2.plugins.module_utils._agent.captured import MOST_PATHS
from ansible_collections.nearmetal.ec2.plugins.module_utils._parse import ethtool

from tests.support.fresh_host import fresh

Plan = Callable[..., Tuple[int, str]]
KERNEL = "/proc/sys/kernel/osrelease"
COUNT = record_key(ethtool.count_question(ethtool.STATISTICS))
DEEP = "/".join(["", *["d"] * 39])

# Changes to a complete capture; VICTIM is an existing folder of the user who plans.
ESCAPES: Dict[str, Dict[str, Dict[str, str]]] = {
    "below a link": {"links": {"/aa": "VICTIM", "/aa/evil": "host.json"}},
    "folders below a link": {"links": {"/aa": "VICTIM", "/aa/new/sub/evil": "/x"}},
    "the other way round": {"links": {"/aa/evil": "/x", "/aa": "VICTIM"}},
    "below the folder planned in": {"links": {"/aa": "/proc/self/cwd", "/aa/evil": "host.json"}},
    "up": {"links": {"/aa": "../" * 40 + "VICTIM", "/aa/evil": "/x"}},
    "a chain": {"links": {"/aa": "/bb", "/bb": "cc", "/cc": "VICTIM", "/aa/evil": "/x", "/bb/evil": "/x"}},
    "a chain of one link below another": {"links": {"/aa": "VICTIM", "/aa/b": "..", "/aa/b/evil": "/x"}},
    "another spelling of the link": {"links": {"/aa": "VICTIM", "/./aa/evil": "/x"}},
    "a file below a link": {"links": {"/aa": "VICTIM"}, "files": {"/aa/evil": "x"}},
    "a file below another spelling": {"links": {"/aa": "VICTIM"}, "files": {"/./aa/./evil": "x"}},
    "a file named like a link": {"links": {"/aa": "VICTIM/evil"}, "files": {"/aa": "x"}},
    "a folder that is a link": {"links": {"/sys": "VICTIM"}},
    "dots in a file's path": {"files": {"/../../evil": "x"}},
    "dots in a link's path": {"links": {"/../../evil": "/x"}},
    "dots at the end": {"links": {"/aa/..": "/x"}},
    "no absolute path": {"links": {"evil": "/x"}},
    "the root": {"links": {"/": "VICTIM"}},
    "two slashes": {"links": {"//evil": "/x"}},
    "a line's end": {"files": {"/evil\n": "x"}},
    "forty names deep, below a link": {"links": {DEEP: "VICTIM", f"{DEEP}/evil": "/x"}},
    "too deep": {"links": {f"{DEEP}/d/evil": "/x"}},
    "too long": {"links": {"/".join(["", *["n" * 255] * 20, "evil"]): "/x"}},
    "a link to nothing": {"links": {"/aa": ""}},
    "a link that none can be": {"links": {"/aa": "\ud800"}},
    "a link with a NUL": {"links": {"/aa": "VICTIM\0"}},
    "a link that is too long": {"links": {"/aa": "n" * 5000}},
}


@pytest.fixture
def victim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which nothing may be written or read; the plan is made in it."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "secret").write_text("hunter2\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def whole(tmp_path: Path) -> Dict[str, Any]:
    """A capture as its host makes it."""
    return capture(fresh(tmp_path / "root", "nitro"))


@pytest.fixture
def plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Plan:
    """The exit code of a plan from a capture, and what it printed."""

    def run(captured: Dict[str, Any], workload: str = "base") -> Tuple[int, str]:
        place = tmp_path / "host.json"
        place.write_text(json.dumps(captured))
        capsys.readouterr()
        code = command.main(["plan", "--from", str(place), "--workload", workload])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def state_of(folder: Path) -> Dict[str, str]:
    """Everything in a folder."""
    return {str(path): os.readlink(path) if path.is_symlink() else "" for path in folder.rglob("*")}


def escaping(name: str, whole: Dict[str, Any], victim: Path) -> Dict[str, Any]:
    changed = dict(whole)
    for part, entries in ESCAPES[name].items():
        made = {path: target.replace("VICTIM", str(victim)) for path, target in entries.items()}
        changed[part] = {**made, **whole[part]}
    return changed


@pytest.mark.parametrize("name", ESCAPES)
def test_a_capture_writes_nothing_outside_its_folder(
    name: str, whole: Dict[str, Any], victim: Path, tmp_path: Path, plan: Plan
) -> None:
    evil = escaping(name, whole, victim)
    before = state_of(tmp_path)
    code, message = plan(evil)
    assert (code, message.count("\n"), message[:11]) == (1, 1, "nearmetal: ")
    assert {**before, str(tmp_path / "host.json"): ""} == state_of(tmp_path)


def test_of_a_capture_no_file_is_made(
    whole: Dict[str, Any], plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Laying it out in a temporary folder took minutes on a slow disk, and could follow a stranger's links."""
    expected = plan(whole)
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    for name in ("mkdir", "symlink", "unlink", "rename"):
        monkeypatch.setattr(os, name, None)
    assert plan(whole) == expected
    assert os.listdir(place) == []


def test_a_capture_of_as_many_paths_as_may_be_is_planned_at_once(whole: Dict[str, Any], plan: Plan) -> None:
    """A host of 1,920 CPUs has two thirds of them."""
    known = sum(len(whole[part]) for part in ("files", "links", "folders", "read_only"))
    many = {f"/sys/devices/system/cpu/cpu{number}/online": "1\n" for number in range(MOST_PATHS - known)}
    many["/sys/devices/system/cpu/online"] = "0-59999\n"
    plan(whole)  # imports
    before = time.process_time()
    code, message = plan({**whole, "files": {**many, **whole["files"]}})
    assert (code, message[:12]) == (0, "captured on ")
    assert time.process_time() - before < 2


@pytest.mark.parametrize("queues", [10**power for power in range(10)])
def test_however_many_queues_a_driver_counts_the_plan_is_made_at_once(
    queues: int, whole: Dict[str, Any], plan: Plan
) -> None:
    answers = whole["drivers"]["ens5"]
    (key,) = [key for key in answers if key.startswith(f"{ethtool.GET_CHANNELS:02x}")]
    plan(whole)  # imports
    before = time.process_time()
    counts = struct.pack("=9I", ethtool.GET_CHANNELS, 0, 0, 0, queues, 0, 0, 0, queues).hex()
    _code, message = plan({**whole, "drivers": {"ens5": {**answers, key: counts}}}, "web")
    assert message.startswith("captured on ")
    assert time.process_time() - before < 2


# Changes to a capture, and the sentence that refuses it.
REFUSED: Dict[str, Tuple[Dict[str, Any], str]] = {
    "an answer of another form": ({"drivers": {"ens5": {"03": "zz"}}}, "the driver of 'ens5' to '03'"),
    "an answer of one byte": ({"drivers": {"ens5": {COUNT: "00"}}}, "isn't as long as its question"),
    "no answers": ({"drivers": {"ens5": 5}}, "the driver of 'ens5'"),
    "a device that none is called": ({"drivers": {"e" * 5000: {}}}, "the driver of 'eeeee"),
    "a folder that is a number": ({"folders": [7]}, "7 isn't a path"),
    "a file that is a number": ({"files": {"/proc/stat": 7}}, "the file '/proc/stat' isn't a text"),
    "a file of no path": ({"files": {"\x1b[2J" + "x" * 5000: ""}}, "isn't a path"),
    "a file with a NUL": ({"files": {"/proc/stat": "a\0"}}, "the file '/proc/stat' isn't a text"),
    "a file that is too long": ({"files": {"/proc/stat": "a" * 5_000_000}}, "the file '/proc/stat' isn't a text"),
    "a link that is no text": ({"links": {"/proc/self": None}}, "the link '/proc/self'"),
    "a link of a surrogate": ({"links": {"/proc/self": "\udc80"}}, "the link '/proc/self'"),
    "too many paths": ({"folders": ["/a"] * 70_000}, "paths, more than 65536"),
    "no table of links": ({"links": []}, "a part of it is missing: links"),
    "a machine that is a number": ({"machine": 5}, "machine is 5"),
    "a date that is a book": ({"captured": "x" * 10_000}, "captured is 'xxx"),
    "no wanted": ({"wanted": {"smt": False}}, "what is wanted of 'smt'"),
    "wanted of a megabyte": ({"wanted": {"smt": {"state": "x" * 1_000_000}}}, "what is wanted of 'smt'"),
    "another format": ({"format": True}, "its format isn't 1"),
    "a later format": ({"format": 2}, "its format isn't 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_hostile_capture_is_refused_in_a_sentence_that_names_the_record(
    name: str, whole: Dict[str, Any], plan: Plan
) -> None:
    change, message = REFUSED[name]
    code, printed = plan({**whole, **change})
    assert (code, printed.count("\n"), printed[:11]) == (1, 1, "nearmetal: ")
    assert message in printed
    assert printed.rstrip("\n").isprintable()
    assert len(printed) < 1000


@pytest.mark.parametrize(
    "text", ["", "\xff", "[1", "[" * 100_000, "NaN", '{"format": 1e400}', "9" * 100_000, '{"a": "\\']
)
def test_invalid_json_is_refused_in_a_sentence(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "host.json"
    place.write_bytes(text.encode("latin-1"))
    assert command.main(["plan", "--from", str(place)]) == 1
    assert f"nearmetal: {place} isn't a capture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", ": it is empty"), (" \n", ": it is empty"), ('{"hosts": []}', " (it is other JSON)"), ("[]", " (it is ")],
)
def test_what_somebody_takes_for_a_capture_is_named(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "host.json"
    place.write_text(text)
    assert command.main(["plan", "--from", str(place)]) == 1
    assert capsys.readouterr().err.startswith(f"nearmetal: {place} isn't a capture{reason}")


def test_standard_input_is_called_so(capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    os.close(write)
    kept = os.dup(0)
    os.dup2(read, 0)
    try:
        assert command.main(["plan", "--from", "-"]) == 1
    finally:
        os.dup2(kept, 0)
    assert capsys.readouterr().err.startswith("nearmetal: standard input isn't a capture: it is empty")


def test_a_too_large_capture_is_refused_without_reading_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "host.json"
    with place.open("wb") as stream:
        stream.truncate(64 << 20)
    assert command.main(["plan", "--from", str(place)]) == 1
    assert "it is larger than 16 MiB" in capsys.readouterr().err


# Files that no kernel has: each is planned, or the concern names the file.
STRANGE: Dict[str, Tuple[str, str]] = {
    "a node that is none": (r"/proc/irq/\d+/node", "--1\n"),
    "a node of many digits": (r"/proc/irq/\d+/node", "9" * 4000),
    "an affinity that is none": (r"/proc/irq/\d+/smp_affinity_list", "x\n"),
    "no numbers": (r"/sys/.*", "²\n"),
    "very large numbers": (r"/sys/.*", "9" * 4000),
    "negative numbers": (r"/(sys|proc)/.*", "-1\n"),
    "surrogates": (r"/.*", "\udc80\ud800\n"),
    "nothing": (r"/.*", ""),
    "only blanks": (r"/.*", " \t\n" * 1000),
    "all CPUs that there can be": (r".*/(online|present|possible|cpulist|.*_list)", "0-65535\n"),
    "a log of one line of digits": (r"/dev/kmsg|/var/log/dmesg", "1" * 80_000),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_files_are_planned_or_named(name: str, whole: Dict[str, Any], plan: Plan) -> None:
    pattern, text = STRANGE[name]
    changed = {path: text if re.fullmatch(pattern, path) else old for path, old in whole["files"].items()}
    log = {"/dev/kmsg": text} if re.fullmatch(pattern, "/dev/kmsg") else {}
    code, printed = plan({**whole, "files": {**changed, **log}})
    assert code in (0, 1)
    assert printed.startswith(("captured on ", "nearmetal: "))
    assert all(len(line) <= 1500 for line in printed.splitlines())


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        (r"/proc/irq/\d+/smp_affinity_list", "²\n", 1),  # nothing could give it back
        (r"/proc/cmdline", "ro maxcpus=²\n", 0),
        (r"/proc/cmdline", f"ro maxcpus={'9' * 5000}\n", 0),
        (r"/proc/sys/net/.*", "²\n", 1),
        (r".*/cgroup\.procs", "² 7\n", 0),
    ],
    ids=["interrupts", "cpus_of_a_boot", "many_cpus_of_a_boot", "network_stack", "services"],
)
def test_numbers_that_no_kernel_writes_are_planned(
    pattern: str, text: str, expected: int, tmp_path: Path, plan: Plan
) -> None:
    """int() takes some digits outside ASCII, and refuses others and numbers of more than 4,300 digits."""
    captured = capture(fresh(tmp_path / "metal", "metal"))
    service = {"/sys/fs/cgroup/system.slice/app.service/cgroup.procs": "7\n"}
    every = {**captured["files"], **service}
    files = {path: text if re.fullmatch(pattern, path) else old for path, old in every.items()}
    code, printed = plan({**captured, "files": files}, "low_latency")
    assert (code, printed[:12]) == (expected, "captured on ")


def test_links_in_a_ring_are_a_place_that_does_not_exist(whole: Dict[str, Any], plan: Plan) -> None:
    ring = {"/sys/devices/system/node": "cpu", "/sys/devices/system/cpu": "node"}
    files = {path: text for path, text in whole["files"].items() if not path.startswith(tuple(ring))}
    folders = [path for path in whole["folders"] if not path.startswith(tuple(ring))]
    links = {path: to for path, to in whole["links"].items() if not path.startswith(tuple(ring))}
    code, printed = plan({**whole, "files": files, "folders": folders, "links": {**links, **ring}})
    assert (code, printed[:12]) == (0, "captured on ")


@pytest.mark.parametrize(
    "links",
    [
        {KERNEL: "VICTIM/secret"},
        {KERNEL: "../" * 40 + "VICTIM/secret"},
        {KERNEL: "/proc/self/cwd/secret"},
        {KERNEL: "/aa/secret", "/aa": "VICTIM"},
        # The path behind a too long chain is looked up nowhere.
        {
            KERNEL: "/l1",
            **{f"/l{number}": f"/l{number + 1}" for number in range(1, 39)},
            "/l39": "/x/secret",
            "/x/secret": "VICTIM",
        },
    ],
)
def test_links_of_a_capture_lead_nowhere_else(
    links: Dict[str, str], whole: Dict[str, Any], victim: Path, plan: Plan
) -> None:
    whole["files"][KERNEL] = "6.1.of-the-capture"
    assert "6.1.of-the-capture" in plan(whole)[1]
    del whole["files"][KERNEL]
    whole["links"].update({path: target.replace("VICTIM", str(victim)) for path, target in links.items()})
    code, message = plan(whole)
    assert (code, "hunter2" in message) == (0, False)
    assert state_of(victim) == {str(victim / "secret"): ""}
