# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole rollout of a large fleet: python -m tests.bench.rollout {ssh | answers | ping | steps} HOSTS

With `ssh` each host is simulated and has a warm connection of its own to an ssh server that is started for it. With
`answers` there are no hosts: the connection answers modules with what simulated ones said. `ping` is Ansible alone,
with a play that pings the same hosts. `steps` are those of the controller without Ansible, on a clock of their own, and
without the judgment of the metrics. Printed are the time, the memory, and the record's size.
"""

from __future__ import annotations

import json
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Iterator
from unittest import mock

from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import metrics, run
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.decision import GO_ON, Judgment

from dev import ROOT, bench
from dev.programs import sshd
from tests.bench import fleet
from tests.support.simulated import simulate

FORKS = 20
PYTHON = "/usr/bin/python3"
_NAMES = re.compile(r"h\d+")


class _Prometheus(BaseHTTPRequestHandler):
    """Each host does 1000 requests a second, and a little more or less."""

    def do_POST(self) -> None:
        asked = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        when = float(asked["start"][0])
        series = [
            {"metric": {"instance": name}, "values": [[when, f"{1000 + hash((name, when)) % 50}"]]}
            for name in sorted(set(_NAMES.findall(asked["query"][0])))
        ]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"data": {"result": series}}).encode())

    def log_message(self, *_words: Any) -> None:
        """Nothing."""


@contextmanager
def _prometheus() -> "Iterator[str]":
    with ThreadingHTTPServer(("127.0.0.1", 0), _Prometheus) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Clock:
    """Time that passes only while somebody waits."""

    def __init__(self) -> None:
        self.now = 1.8e9

    def __getattr__(self, name: str) -> Any:
        return self._now if name in ("time", "monotonic") else getattr(time, name)

    def _now(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.now += seconds + 0.001


def _judged(settings: Any, watch: Any, over: bool = False, **_more: Any) -> Judgment:
    return Judgment(GO_ON if over or len(watch.after) >= settings.looks else "", ())


def _steps(folder: Path, count: int) -> None:
    """The order, the batches and the record of so many hosts, with addresses and ids as AWS gives them."""
    hosts = {
        f"ip-10-{number // 62500}-{number // 250 % 250}-{number % 250}.eu-west-1.compute.internal": {
            "stratum": f"web m6i.xlarge eu-west-1{'abc'[number % 3]}",
            "instance_id": f"i-{number:017x}",
        }
        for number in range(count)
    }
    vitals = {**_asked(folder)["look"]["vitals"], "segments": 10**9, "retransmitted": 10**6}
    began, steps = time.monotonic(), run.Steps(lambda line: None, str(folder), os.getppid())
    names = ("requests", "p99", "cpu")
    begun = steps.begin(
        {"metrics": [{"name": name, "better": "larger", "command": "true"} for name in names], "seed": 7}, hosts
    )

    def ask(_options: Any, places: "list[metrics.Place]", _due: float) -> "dict[str, metrics.Values]":
        return {name: {place.host: round(random.uniform(900, 1100), 3) for place in places} for name in names}

    seen = {"before": vitals, "after": vitals, "reached": True}
    patches = {"time": _Clock(), "judge": _judged, "figures": lambda *_given: []}
    with ExitStack() as stack:
        stack.enter_context(mock.patch.multiple(run, **patches))
        stack.enter_context(mock.patch.object(run.sentences, "so_far", return_value={}))
        stack.enter_context(mock.patch.object(steps, "_ask", ask))
        order = []
        for size in begun["sizes"]:
            opened = steps.open(begun["record"])
            batch = dict.fromkeys(opened["hosts"], seen)
            assert len(batch) == size
            order += opened["hosts"]
            steps.permit(begun["record"], batch)
            steps.decide(begun["record"], steps.watch(begun["record"], batch), batch)
        ended = steps.end(begun["record"], {})
    assert (ended["outcome"], ended["tuned"], order) == ("done", order, begun["order"])
    print(
        f"batches of {begun['sizes']} after {time.monotonic() - began:.0f} s;"
        f" at most {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB"
    )
    _sizes(folder)


def _sizes(folder: Path) -> None:
    for path in (folder / "rollout").iterdir():
        print(f"{path.suffix[1:]}: {path.stat().st_size / 1024:.0f} KiB")


def main(way: str, count: int) -> None:
    """Roll out over so many hosts, and print what it took."""
    with tempfile.TemporaryDirectory(prefix="nm-rollout-") as name, _prometheus() as url:
        folder = Path(name)
        if way == "steps":
            _steps(folder, count)
            return
        if way == "ssh":
            with sshd.running() as native:
                inventory = fleet.simulated(native, folder, count)
                try:
                    _roll_out(folder, inventory, url, {})
                finally:
                    fleet.close(folder, count)
            return
        answers = folder / "answers.json"
        answers.write_text(json.dumps(_asked(folder)))
        variables = {
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "tests/bench/connection"),
            "NEARMETAL_ANSWERS": str(answers),
        }
        own = {"ansible_connection": "answers", "ansible_pipelining": True, "ansible_python_interpreter": PYTHON}
        hosts = {f"h{number:05}": {} for number in range(count)}
        inventory = folder / "hosts.json"
        inventory.write_text(json.dumps({"all": {"hosts": hosts, "vars": own}}))
        if way == "ping":
            _run(folder, ["-i", str(inventory), str(ROOT / "tests/bench/ping.yml")], variables)
        else:
            _roll_out(folder, inventory, url, variables)


def _asked(folder: Path) -> "dict[str, Any]":
    """What a simulated host answers to each step, and to tune."""
    (folder / "asked").mkdir()
    inventory = folder / "asked.json"
    inventory.write_text(json.dumps({"all": {"hosts": {"asked": simulate(folder / "asked", "nitro")}}}))
    wanted = {
        "look": ("rollout", "step=look"),
        "claim": ("rollout", "step=claim record=r lease=0"),
        "tune": ("tune", "workload=web"),
        "release": ("rollout", "step=release record=r"),
    }
    found: "dict[str, Any]" = {"ping": {"ping": "pong"}}
    for name, (module, arguments) in wanted.items():
        words = ["ansible", "-i", str(inventory), "asked", "-b", "-m", f"nearmetal.ec2.{module}", "-a", arguments]
        environment = bench.environment(ANSIBLE_STDOUT_CALLBACK="ansible.builtin.oneline")
        said = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        found[name] = json.loads(said.partition("=> ")[2])
        found[name].pop("ansible_stats", None)
    return found


def _roll_out(folder: Path, inventory: Path, url: str, variables: "dict[str, str]") -> None:
    given = {
        "tune_workload": "web",
        "rollout_seed": 7,
        "rollout_prometheus": {"url": url},
        "rollout_metrics": [
            {"name": name, "better": "larger", "prometheus": f'{name}{{instance=~"{{host}}"}}'}
            for name in ("requests", "hits", "bytes")
        ],
        "rollout_interval": 1,
        "rollout_before": 10,
        "rollout_watch": 10,
        "rollout_watch_at_most": 30,
    }
    _run(folder, ["-i", str(inventory), "nearmetal.ec2.rollout", "-e", json.dumps(given)], variables)
    _sizes(folder / "reports")


def _run(folder: Path, words: "list[str]", variables: "dict[str, str]") -> None:
    environment = bench.environment(
        ANSIBLE_FORKS=str(FORKS),
        ANSIBLE_STDOUT_CALLBACK="ansible.builtin.default",
        NEARMETAL_REPORT_DIRECTORY=str(folder / "reports"),
        **variables,
    )
    began = time.monotonic()
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(["ansible-playbook", *words], env=environment, stdout=output, stderr=output)
        _pid, status, used = os.wait4(process.pid, 0)
        output.seek(0)
        said = [line for line in output if line.startswith(("ROLLOUT", "  ", "TASK [nearmetal.ec2.rollout : Take"))]
    print("".join(said[-12:]), end="")
    print(
        f"ended with {os.waitstatus_to_exitcode(status)} after {time.monotonic() - began:.0f} s,"
        f" {used.ru_utime + used.ru_stime:.0f} s of CPU; at most {used.ru_maxrss / 1024:.0f} MiB in a process"
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
