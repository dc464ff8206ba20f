# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""docs/benchmarks.md has each benchmark as it is declared, and a missing need is one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
import yaml
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.host import refusals
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.benchmark import (
    INSTALLS,
    Machine,
    Tool,
    tools_of,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.disk import SHAPES
from ansible_collections.nearmetal.ec2.plugins.module_utils._benchmark.tools.registry import (
    BENCHMARKS,
    is_benchmark,
    load_of,
    named,
    options_of,
)
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts import topology
from ansible_collections.nearmetal.ec2.plugins.module_utils._facts.host import Host
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._prove import inputs

ROOT = Path(__file__).resolve().parents[5]
PAGE = (ROOT / "docs/benchmarks.md").read_text("utf-8")
# What a benchmark can't do without.
REQUIRED: Dict[str, Dict[str, Any]] = {
    "unixbench": {"path": "/opt/UnixBench", "tests": ["syscall"], "seconds": 10},
    "ebizzy": {"path": "/opt/ebizzy"},
}
FIO = Tool("fio-that-nobody-has", ("--version",), {"debian": "fio", "suse": "fio"})


def test_the_page_s_table_is_what_the_benchmarks_declare() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \| (.+) \| (.+) \| (.+) \|$", PAGE, re.M)
    declared = [
        (
            name,
            ", ".join(tool.program for tool in benchmark.tools) or "none",
            f"{benchmark.options['seconds']['default']:g}",
        )
        for name, benchmark in BENCHMARKS.items()
    ]
    assert [(name, tools, seconds) for name, _question, tools, seconds, _limitation in rows] == declared


def test_the_module_offers_every_benchmark() -> None:
    spec = yaml.safe_load((ROOT / "roles/benchmark/meta/argument_specs.yml").read_text("utf-8"))
    assert spec["argument_specs"]["main"]["options"]["benchmark_name"]["choices"] == list(BENCHMARKS)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_record_names_a_benchmark_with_its_options(name: str) -> None:
    load = load_of(name, REQUIRED.get(name, {}), 3)
    assert is_benchmark(load)
    assert named(load) == (name, options_of(name, {"seconds": 3, **REQUIRED.get(name, {})}))
    assert {family for tool in BENCHMARKS[name].tools for family in tool.packages} <= set(INSTALLS)


@pytest.mark.parametrize(
    ("load", "words"),
    [
        ("nearmetal benchmark nothing {}", "'nothing' isn't a benchmark: choose one of clock, "),
        ("nearmetal benchmark clock {", "the options of the benchmark clock aren't JSON: "),
        ('nearmetal benchmark clock {"rate": 1}', "benchmark.options of clock.rate isn't an option; "),
        ('nearmetal benchmark clock {"seconds": 0}', "benchmark.options of clock: seconds must be a number "),
    ],
)
def test_a_load_that_names_no_benchmark_is_refused(load: str, words: str) -> None:
    with pytest.raises(NearmetalError) as raised:
        named(load)
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    ("release", "words"),
    [
        ("ID=debian", "fio-that-nobody-has isn't installed: run `apt-get install fio` on the host"),
        ("ID=ubuntu\nID_LIKE=debian", "fio-that-nobody-has isn't installed: run `apt-get install fio` on the host"),
        ('ID="sles"\nID_LIKE="suse"', "fio-that-nobody-has isn't installed: run `zypper install fio` on the host"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"', "fio-that-nobody-has isn't installed, and no package of this "),
        ("ID=arch", "fio-that-nobody-has isn't installed, and no package of this distribution is known to have it: "),
    ],
)
def test_a_missing_tool_is_named_with_the_package_of_the_distribution(release: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text(release)
    with pytest.raises(NearmetalError) as raised:
        refusals.require_tool(Host(str(tmp_path)), FIO)
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    ("name", "tool", "says", "words"),
    [
        ("key_value", 0, "Redis server v=6.0.16", "the benchmark needs redis-server 6.2 or newer; this host has "),
        ("key_value", 0, "nothing", "the benchmark needs redis-server 6.2 or newer; this host has 'nothing'"),
        ("key_value", 0, "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0", ""),
        (
            "latency",
            0,
            "cyclictest V 2.20",
            "the benchmark needs a newer cyclictest, with the option --default-system; ",
        ),
        ("latency", 0, "cyclictest V 2.40\n         --default-system  Don't attempt to tune", ""),
    ],
)
def test_a_tool_that_is_too_old_is_refused(name: str, tool: int, says: str, words: str) -> None:
    error = ""
    try:
        refusals.require_version(BENCHMARKS[name].tools[tool], says.split("\n")[0], says)
    except NearmetalError as raised:
        error = str(raised)
    assert error.startswith(words)
    assert bool(error) == bool(words)


def test_a_package_that_starts_a_service_is_named_with_what_keeps_it_from_that(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/os-release").write_text("ID=debian")
    tool = BENCHMARKS["web"].tools[0]._replace(program="nginx-that-nobody-has")
    with pytest.raises(NearmetalError, match=r"unless you run `systemctl mask nginx` first$"):
        refusals.require_tool(Host(str(tmp_path)), tool)


def test_a_store_answers_the_load_and_nothing_else() -> None:
    run = BENCHMARKS["key_value"].run(options_of("key_value", {}), "/folder")
    assert "user default on nopass ~key:* -@all +get +set" in run.files["redis.conf"].splitlines()


def test_a_disk_is_written_where_blocks_are_and_not_into_holes() -> None:
    commands = {shape: BENCHMARKS["disk"].run(options_of("disk", {"shape": shape}), "").commands for shape in SHAPES}
    overwrites = {shape for shape, (command,) in commands.items() if "--overwrite=1" in command.argv}
    assert overwrites == {"random_write", "sequential_write"}, "fio writes the file beforehand for all that reads"


def test_ebizzy_needs_the_memory_of_its_threads() -> None:
    # Each copies a record of 512 KiB, and has a stack.
    assert BENCHMARKS["ebizzy"].limits(options_of("ebizzy", {"path": "/ebizzy", "threads": 4096})).needs_mib >= 2048
    assert BENCHMARKS["ebizzy"].limits(options_of("ebizzy", {"path": "/ebizzy"})).needs_mib == 128


def test_the_page_s_example_has_variables_of_the_roles() -> None:
    (text,) = re.findall(r"^```yaml\n(# proof.yml\n.*?)^```$", PAGE, re.M | re.S)
    shown: Dict[str, Any] = yaml.safe_load(text)
    options = [
        yaml.safe_load((ROOT / f"roles/{role}/meta/argument_specs.yml").read_text()) for role in ("prove", "tune")
    ]
    assert set(shown) <= {name for spec in options for name in spec["argument_specs"]["main"]["options"]}
    assert shown["prove_benchmark"] in BENCHMARKS


def test_the_page_s_options_are_options() -> None:
    spec = yaml.safe_load((ROOT / "roles/benchmark/meta/argument_specs.yml").read_text("utf-8"))
    texts = re.findall(r"^```yaml\n((?:#[^\n]*\n)?benchmark_name: .*?)^```$", PAGE, re.M | re.S)
    given = [yaml.safe_load(text) for text in texts]
    assert len(given) >= 2
    for shown in given:
        assert set(shown) <= set(spec["argument_specs"]["main"]["options"])
        options_of(shown["benchmark_name"], shown["benchmark_options"])
    for part in ("{part: server, address: 10.0.0.12}", "{part: client, server: 10.0.0.12}"):
        assert part in PAGE
        for name in ("network", "key_value", "web", "cache"):
            options_of(name, yaml.safe_load(part))


def test_the_playbook_between_two_hosts_has_the_variables_of_the_page() -> None:
    (play,) = yaml.safe_load((ROOT / "playbooks/benchmark_between.yml").read_text("utf-8"))
    rows = dict(re.findall(r"^\| `(benchmark_\w+)` \| .+ \| (.+) \|$", PAGE, re.M))
    assert list(rows) == [name for name in play["vars"] if name.startswith("benchmark_")]
    assert [rows[name] for name in ("benchmark_port", "benchmark_limit")] == [
        str(play["vars"][name]) for name in ("benchmark_port", "benchmark_limit")
    ]


def test_a_sweep_goes_on_from_the_most_that_the_disk_did() -> None:
    options = options_of("disk", {"sweep": True, "seconds": 26, "shape": "random_write"})
    output = '{"jobs": [{"error": 0, "write": {"iops": 3000.4}}]}'
    commands = BENCHMARKS["disk"].then([output], options)
    rates = [word for command in commands for word in command.argv if word.startswith("--rate_iops=")]
    assert rates == [f"--rate_iops={300 * step}" for step in range(1, 13)]
    assert all("--runtime=2" in command.argv for command in commands)
    assert BENCHMARKS["disk"].then([output] * 13, options) == ()
    assert BENCHMARKS["disk"].then([output], options_of("disk", {})) == ()


def test_rates_are_shared_among_reads_and_writes_and_among_devices() -> None:
    given = {"shape": "mixed_80", "device": "/dev/nvme1n1,/dev/nvme2n1", "sweep": True, "seconds": 26}
    output = '{"jobs": [{"error": 0, "read": {"iops": 8000}, "write": {"iops": 2000}}]}'
    (first, *_rest) = BENCHMARKS["disk"].then([output], options_of("disk", given))
    assert first.argv[-5:] == (
        *("--rate_iops=400,100", "--name=mixed_80", "--filename=/dev/nvme1n1"),
        *("--name=mixed_80", "--filename=/dev/nvme2n1"),
    )
    fixed = options_of("disk", {"rate": 5000, "directory": "/data"})
    assert "--rate_iops=5000" in BENCHMARKS["disk"].run(fixed, "").commands[0].argv


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("disk", {"sweep": True, "rate": 9}, "benchmark.options of disk has sweep and rate: a sweep chooses its rates"),
        ("network", {"part": "client"}, "benchmark.options of network has server: null; part: client needs "),
        ("network", {"part": "client", "server": "-B"}, "benchmark.options of network has server: '-B'; part: "),
        (
            "network",
            {"address": "10.0.0.1"},
            "benchmark.options of network has address: '10.0.0.1'; it must be the address ",
        ),
        (
            "web",
            {"part": "server"},
            "benchmark.options of web has address: null; it must be the address of the host on ",
        ),
        (
            "cache",
            {"address": "10.0.0.1"},
            "benchmark.options of cache has address: '10.0.0.1'; it must be the address ",
        ),
        (
            "key_value",
            {"part": "server", "address": "::1"},
            "benchmark.options of key_value has address: '::1'; it must ",
        ),
        ("key_value", {"part": "client"}, "benchmark.options of key_value has server: null; part: client needs the "),
        ("web", {"part": "client", "server": "10.0.0.1:80"}, "benchmark.options of web has server: '10.0.0.1:80'; "),
        ("network", {"server": "10.0.0.1"}, "benchmark.options of network has server: '10.0.0.1'; only part: client "),
        ("network", {"latency": True, "packets": True}, "benchmark.options of network has latency with packets; one "),
        ("network", {"latency": True, "streams": 2}, "benchmark.options of network has latency with streams; one "),
        ("memory", {"load": "stream", "seconds": 2}, "benchmark.options of memory has seconds: 2 with load: stream; "),
        (
            "ebizzy",
            {},
            "benchmark.options of ebizzy has path: null; it must be the absolute path of the program ebizzy, ",
        ),
        ("ebizzy", {"path": "-x"}, "benchmark.options of ebizzy has path: '-x'; it must be the absolute path of the "),
        ("unixbench", {"path": "/opt/../x"}, "benchmark.options of unixbench has path: '/opt/../x'; it must be "),
        (
            "unixbench",
            {"path": "/opt/UnixBench", "seconds": 60},
            "benchmark.options of unixbench has seconds: 60; its tests have times of their own, and these take 320: ",
        ),
        (
            "unixbench",
            {"path": "/opt/UnixBench", "tests": ["dhrystone"]},
            "benchmark.options of unixbench.tests[0] can't be 'dhrystone'; choose one of dhry2reg, whetstone-double, ",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused(name: str, options: Dict[str, Any], words: str) -> None:
    with pytest.raises(NearmetalError) as raised:
        options_of(name, options)
    assert str(raised.value).startswith(words)


@pytest.mark.parametrize(
    ("load", "cache_kib", "block_kib"),
    [
        ("blocks", 0, 65536),
        ("blocks", 4096, 65536),
        ("blocks", 32768, 131072),  # four times the cache, as STREAM asks of its arrays
        ("stream", 107520, 430080),
        ("fresh", 32768, 512),
    ],
)
def test_blocks_of_memory_are_larger_than_the_cache(load: str, cache_kib: int, block_kib: int) -> None:
    fit = BENCHMARKS["memory"].fit
    assert fit is not None
    assert fit(options_of("memory", {"load": load}), Machine(2, cache_kib))["block_kib"] == block_kib
    assert fit(options_of("memory", {"load": load, "block_kib": 8}), Machine(2, cache_kib))["block_kib"] == 8


def test_the_largest_cache_of_a_cpu_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "sys/devices/system/cpu/cpu0/cache"
    for index, size in (("index0", "48K"), ("index1", "32K"), ("index2", "2048K"), ("index3", "107520K")):
        (folder / index).mkdir(parents=True)
        (folder / index / "size").write_text(f"{size}\n")
    assert topology.largest_cache_kib(Host(str(tmp_path)), 0) == 107520
    assert topology.largest_cache_kib(Host(str(tmp_path)), 1) == 0


def test_the_arrays_of_stress_ng_are_as_large_as_the_blocks() -> None:
    options = {**options_of("memory", {"load": "stream", "threads": 2}), "block_kib": 131072}
    (command,) = BENCHMARKS["memory"].run(options, "").commands
    # It divides what it takes for the cache by its two processes, and makes each array four times that.
    assert "--stream-l3-size=65536K" in command.argv


@pytest.mark.parametrize(
    ("name", "options", "programs"),
    [
        ("network", {}, ["iperf3"]),
        ("network", {"latency": True}, ["sockperf"]),
        ("cache", {}, ["memcached"]),
        ("key_value", {"part": "client", "server": "10.0.0.12"}, []),
        ("cache", {"part": "server", "address": "10.0.0.12"}, ["memcached"]),
        ("web", {"part": "client", "server": "10.0.0.12"}, ["wrk"]),
    ],
)
def test_only_the_tools_of_the_chosen_options_are_needed(
    name: str, options: Dict[str, Any], programs: List[str]
) -> None:
    needed = tools_of(BENCHMARKS[name], options_of(name, options))
    assert [tool.program for tool in needed] == programs


@pytest.mark.parametrize(
    ("given", "memory_mib", "keys"),
    [
        ({"seconds": 200}, 65536, 10000000),
        ({"seconds": 10}, 65536, 1000000),  # so that writing them takes about as long
        ({"seconds": 200}, 4096, 4668442),  # a quarter of the memory
        ({"part": "server", "address": "10.0.0.12", "seconds": 1}, 65536, 10000000),
        ({"part": "client", "server": "10.0.0.12"}, 1024, 1000000),  # where the server has none of its own
        ({"keys": 50}, 1024, 50),
    ],
)
def test_a_store_is_filled_as_far_as_memory_and_time_go(given: Dict[str, Any], memory_mib: int, keys: int) -> None:
    key_value = BENCHMARKS["key_value"]
    assert key_value.fit is not None
    options = key_value.fit(options_of("key_value", given), Machine(8, 0, 4, 4, memory_mib))
    (load, *_rest) = key_value.run(options, "").commands
    assert json.loads(load.argv[1])["keys"] == keys
    needs = key_value.limits(options).needs_mib
    assert needs <= max(512, memory_mib * 2 // 5), "it is there"
    assert given.get("part") == "client" or needs >= 128 + keys * 230 // 1048576


def test_a_path_without_the_program_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "UnixBench")
    (tool,) = tools_of(BENCHMARKS["unixbench"], {"path": f"{path}/"})
    with pytest.raises(NearmetalError, match=rf"^{path}/Run isn't a program that this host can start: build it, and "):
        refusals.require_tool(Host(str(tmp_path)), tool)


def test_a_proof_of_the_network_has_its_load_on_a_client() -> None:
    (text,) = re.findall(r"^```yaml\n(# network-proof.yml\n.*?)^```$", PAGE, re.M | re.S)
    shown: Dict[str, Any] = yaml.safe_load(text)
    given = {name[len("prove_") :]: value for name, value in shown.items() if name.startswith("prove_")}
    options = {"timed": False, "load_on": [given["on"]], **given}
    name, chosen = named(inputs.load_of(options, 10))
    (command,) = BENCHMARKS[name].run(chosen, "").commands
    assert command.argv[:5] == ("iperf3", "--client", "10.0.0.12", "--port", "15201")
    with pytest.raises(NearmetalError, match=r"^prove.benchmark network with the part client can't run on 'host': "):
        inputs.load_of({**options, "load_on": ["host"]}, 10)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_page_has_each_shape_as_it_is(shape: str) -> None:
    table = PAGE[PAGE.index("| `shape` |") :].split("\n\n")[0]
    (row,) = [line for line in table.split("\n") if f"`{shape}`" in line.split(" | ")[0]]
    names, requests, in_flight = row.strip("| ").split(" | ")
    which = names.split(", ").index(f"`{shape}`")
    found = SHAPES[shape]
    depths = in_flight.split(", ")
    assert depths[min(which, len(depths) - 1)] == str(found.depth)
    assert requests.startswith(f"{found.kib} KiB {'at random' if 'rand' in found.pattern else 'in order'}")
    if found.read_percent:
        assert re.search(rf"\b{found.read_percent}\b", requests)
