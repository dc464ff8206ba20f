# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The steps of a rollout on the controller, without Ansible: tests/unit/playbooks/test_rollout.py has the playbook."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._error import NearmetalError
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout import page, record, run
from ansible_collections.nearmetal.ec2.plugins.plugin_utils._rollout.run import Steps

NAMES = [f"h{number:02}" for number in range(10)]
WELL = {"before": {"unhealthy": ""}, "after": {"unhealthy": ""}, "failed": "", "reached": True}


class Fleet:
    """Ten hosts; a tuned one does `percent` of what it did before."""

    def __init__(self, folder: Path, percent: int = 100) -> None:
        self.folder, self.said = folder, [""]
        self.steps = Steps(self.said.append, str(folder / "reports"), os.getppid())
        for name in NAMES:
            (folder / name).write_text(f"{1000 + int(name[1:])}")
        self.percent = percent
        self.ill: Sequence[str] = ()
        self.suffers = ""
        self.after: Any = {"unhealthy": "slow"}  # what is seen then of the host that suffers
        self.proof: Dict[str, Any] = {}
        self.hooks = False
        self.command = f"cat {folder}/{{host}}"
        self.after_tuning: Callable[[], Any] = lambda: None

    def begin(self, write: bool = True, **options: Any) -> Dict[str, Any]:
        """Draw the batches."""
        metric = {"name": "requests", "better": "larger", "command": self.command}
        times = {"interval": 0.1, "before": 0.2, "watch": 0.3, "watch_at_most": 0.5}
        given = {"metrics": [metric], "batches": [1, 6, "100%"], "seed": 7, **times, **options}
        hosts = {name: {"stratum": "", "address": name} for name in NAMES}
        self.begun = self.steps.begin(given, hosts, write)
        return self.begun

    def batch(self) -> Dict[str, Any]:
        """Tune the next batch, as the playbook does it; what was decided."""
        path = self.begun["record"]
        opened = self.steps.open(path, self.hooks)
        self.groups = opened.get("groups", {})
        hosts: Dict[str, Dict[str, Any]] = {name: dict(WELL) for name in opened["hosts"]}
        for host in hosts.values() if opened.get("prove") else ():
            host["proof"] = self.proof
        for name in self.ill:
            hosts.get(name, {}).update(before={"unhealthy": "ill"}, after={"unhealthy": "ill"}, reached=False)
        hosts.get(self.suffers, {}).update(after=self.after)
        if not opened["held"] and not self.steps.permit(path, hosts)["held"]:
            for name in (name for name, host in hosts.items() if host["reached"]):
                (self.folder / name).write_text(f"{10 * self.percent + int(name[1:])}")
            self.after_tuning()
        judged = self.steps.watch(path, hosts)
        return self.steps.decide(path, judged, hosts)

    def run(self) -> Dict[str, Any]:
        """All batches that are left; the end."""
        decided: Dict[str, Any] = {"decision": "go_on", "back": []}
        for _size in self.begun["sizes"]:
            if decided["decision"] == "go_on":
                decided = self.batch()
        return self.steps.end(self.begun["record"], dict.fromkeys(decided["back"], ""))

    def lines(self, kind: str) -> List[Dict[str, Any]]:
        """The lines of a kind in the record."""
        lines = [json.loads(line) for line in Path(self.begun["record"]).read_text().splitlines()]
        return [line for line in lines if line["kind"] == kind]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Ten hosts that nobody has tuned, and time for the looks also on a busy machine."""
    monkeypatch.setattr(run, "_PATIENCE", 100)
    return Fleet(tmp_path)


def test_a_host_that_was_left_out_is_neither_counted_as_tuned_nor_taken_back(fleet: Fleet) -> None:
    order = fleet.begin(on_back="all")["order"]
    fleet.ill, fleet.suffers = [order[1]], order[2]
    ended = fleet.run()
    assert ended["outcome"] == "taken_back"
    assert set(fleet.lines("restored")[0]["hosts"]) == {order[0], *order[2:6]}
    assert any("5 of 10 hosts tuned, look" in line for line in fleet.said)
    assert any(re.search(r"look 2, [0-9:]{8} left to decide; so far requests [+−]0\.\d %", line) for line in fleet.said)
    text = Path(ended["record"]).with_suffix(".html").read_text()
    taken_back = text.partition("Taken back")[2].partition("Left out")[0]
    assert all(f"<li>{host}</li>" in taken_back for host in (order[0], *order[2:6]))
    assert f"{order[2]}: slow" in text
    assert f"<li>{order[1]}</li>" in text
    assert text.count("<figure") == 2
    kept = record.read(ended["record"])
    kept.without = {f"host {number}" for number in range(60)}
    assert "<li>and 10 more</li>" in page.render(kept)
    assert ended["lines"][:2] == ["ROLLOUT  taken back: 0 of 10 hosts tuned", "  taken back: 5 of 5 hosts"]


def test_a_host_that_cant_be_reached_after_its_tuning_is_taken_back_and_named_with_what_finishes_it(
    fleet: Fleet,
) -> None:
    order = fleet.begin(metrics=[])["order"]
    fleet.suffers, fleet.after = order[1], None
    assert fleet.batch()["decision"] == "go_on"
    decided = fleet.batch()
    assert (decided["decision"], decided["back"]) == ("back", order[1:6])
    assert decided["reasons"] == [f"{order[1]}: the host can't be reached after its tuning"]
    left = {order[1]: "the host can't be reached"}
    lines = fleet.steps.end(fleet.begun["record"], {**dict.fromkeys(decided["back"], ""), **left})["lines"]
    text = Path(fleet.begun["record"]).with_suffix(".html").read_text()
    assert f"<li>{order[1]}: the host can&#39;t be reached</li>" in text.partition("Not taken back")[2]
    assert lines[1:4] == [
        "  taken back: 4 of 5 hosts",
        f"  not taken back: {order[1]}: the host can't be reached",
        f"  finish it: ansible-playbook nearmetal.ec2.restore -e target={order[1]}",
    ]


def test_a_run_that_ends_before_the_last_batch_names_no_reason_to_go_on(fleet: Fleet) -> None:
    path = fleet.begin()["record"]
    assert fleet.batch()["decision"] == "go_on"
    assert fleet.steps.end(path, {})["msg"] == "rollout not over"


def test_a_metric_that_is_as_good_as_zero_has_a_change_too(fleet: Fleet) -> None:
    fleet.command = f"grep -qx 10.. {fleet.folder}/{{host}} && echo 1e-300 || echo 1e99"
    fleet.percent = 50
    fleet.begin()
    assert fleet.run()["outcome"] == "done"


def test_only_the_batch_is_taken_back_unless_all_is_wanted(fleet: Fleet) -> None:
    fleet.percent = 80
    order = fleet.begin()["order"]
    assert fleet.run()["tuned"] == order[:1]


def test_a_source_that_is_down_holds_and_whoever_has_looked_goes_on(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.command = f"! test -e {fleet.folder}/down && cat {fleet.folder}/{{host}}"
    first = fleet.begin()["order"][0]
    fleet.after_tuning = (fleet.folder / "down").touch
    monkeypatch.setattr(run, "_PATIENCE", 3)
    held = fleet.run()
    assert (held["outcome"], held["tuned"]) == ("held", [first])
    assert any("only 0 of 3 looks gave a value" in line for line in fleet.said)
    fleet.begin(resume=held["record"])
    with pytest.raises(NearmetalError, match="no metric has a value of any host, so nothing was tuned"):
        fleet.run()
    (fleet.folder / "down").unlink()
    fleet.after_tuning = lambda: None
    monkeypatch.setattr(run, "_PATIENCE", 100)
    fleet.begin(resume=held["record"])
    assert fleet.run()["outcome"] == "done"


def test_a_source_that_answers_in_every_other_interval_is_enough(fleet: Fleet) -> None:
    fleet.command = f"sleep 0.15; cat {fleet.folder}/{{host}}"
    fleet.begin(watch=0.2, watch_at_most=0.7)
    assert fleet.run()["outcome"] == "done"
    assert all(line["decision"] == "go_on" for line in fleet.lines("decision"))


def test_only_values_of_cloudwatch_are_waited_for(fleet: Fleet) -> None:
    fleet.begin(cloudwatch={"regions": ["eu-west-1"]})
    assert fleet.run()["outcome"] == "done"


def test_the_first_batch_is_what_a_proof_says(fleet: Fleet) -> None:
    for verdict, outcome in (("worse", "taken_back"), ("same", "held")):
        order = fleet.begin(prove_first=True)["order"]
        fleet.proof = {"kept": False, "verdict": verdict}
        ended = fleet.run()
        assert (ended["outcome"], ended["tuned"]) == (outcome, [])  # the proof has restored it
        assert fleet.lines("decision")[0]["reasons"] == [f"{order[0]}: prove says {verdict}"]
        os.unlink(fleet.begun["record"])
    fleet.begin(prove_first=True)
    fleet.proof = {"kept": True, "verdict": "better"}
    assert fleet.run()["outcome"] == "done"


def test_with_hooks_hosts_are_tuned_in_groups(fleet: Fleet) -> None:
    fleet.hooks = True
    fleet.begin()
    fleet.run()
    assert sorted(fleet.groups.values()) == [0, 1, 2, 3]  # the last batch, one host at a time
    fleet.begin(most_unavailable="50%")
    fleet.run()
    assert sorted(fleet.groups.values()) == [0, 0, 1, 1]


def test_a_run_that_was_killed_before_its_hosts_knew_the_decision_decides_again(fleet: Fleet) -> None:
    fleet.begin()
    fleet.batch()
    path = fleet.begun["record"]
    assert "batches of 1, 5, 4" in fleet.begin(resume=path, write=False)["lines"][0]
    assert fleet.begin(resume=path)["sizes"] == [1, 5, 4]
    assert fleet.run()["outcome"] == "done"
    assert [line["number"] for line in fleet.lines("decision")] == [1, 1, 2, 3]
    assert len(fleet.lines("batch")) == 3


def killed_while_it_tuned(fleet: Fleet, away: bool) -> "tuple[str, Dict[str, Dict[str, Any]]]":
    """The record of a run that was killed then, and three hosts as the next run sees them; the first had been away."""
    fleet.begin(batches=[3, "100%"])
    path = fleet.begun["record"]
    hosts: Dict[str, Dict[str, Any]] = {name: dict(WELL) for name in fleet.steps.open(path)["hosts"]}
    first = next(iter(hosts))
    fleet.steps.permit(path, {**hosts, first: {"reached": False}} if away else hosts)
    fleet.begin(resume=path)
    fleet.steps.open(path)
    return path, hosts


@pytest.mark.parametrize("ill", [{"unhealthy": "", "failed_units": ["web.service"]}, {"unhealthy": "refused"}])
def test_what_a_run_that_was_killed_has_harmed_is_no_state_before_the_tuning(fleet: Fleet, ill: Dict[str, Any]) -> None:
    path, hosts = killed_while_it_tuned(fleet, away=False)
    first = next(iter(hosts))
    hosts[first].update(before=ill, after=ill, reached="failed_units" in ill)
    assert not fleet.steps.permit(path, hosts)["held"]
    decided = fleet.steps.decide(path, fleet.steps.watch(path, hosts), hosts)
    assert (decided["decision"], decided["back"]) == ("back", list(hosts))


def test_what_a_proof_has_left_is_taken_back_in_a_batch_that_a_killed_run_had_begun(fleet: Fleet) -> None:
    path = fleet.begin(prove_first=True)["record"]
    assert not fleet.steps.open(path)["again"]
    fleet.begin(resume=path)
    opened = fleet.steps.open(path)
    assert not opened["again"]
    fleet.steps.permit(path, {name: dict(WELL) for name in opened["hosts"]})
    fleet.begin(resume=path)
    opened = fleet.steps.open(path)
    assert opened["prove"]
    assert opened["again"]


def test_a_host_that_was_away_and_is_tuned_by_a_later_run_is_taken_back_too(fleet: Fleet) -> None:
    path, hosts = killed_while_it_tuned(fleet, away=True)
    first, second, third = hosts
    hosts[second]["after"] = {"unhealthy": "slow"}
    hosts[third].update(reached=False, of_others=True)
    fleet.steps.permit(path, hosts)
    assert fleet.steps.decide(path, fleet.steps.watch(path, hosts), hosts)["back"] == [first, second]


def test_whoever_goes_on_by_an_earlier_clock_takes_back_what_it_did_not_reach(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: now() + 3600)
        path, hosts = killed_while_it_tuned(fleet, away=False)
    first, second, _third = hosts
    fleet.begin(resume=path)
    hosts[first].update(before=None, after=None, reached=False)
    hosts[second].update(failed="tune: refused")
    fleet.steps.permit(path, hosts)
    assert fleet.steps.decide(path, fleet.steps.watch(path, hosts), hosts)["back"] == list(hosts)


def test_a_freeze_file_holds_before_the_next_batch_and_the_rest_follows_without_it(fleet: Fleet) -> None:
    freeze = fleet.folder / "freeze"
    fleet.begin(freeze=str(freeze))
    fleet.batch()
    freeze.write_text("release day")
    assert fleet.run()["outcome"] == "held"
    assert any("freeze exists: release day; remove it to go on" in line for line in fleet.said)
    freeze.unlink()
    assert fleet.begin(resume=fleet.begun["record"])["sizes"] == [5, 4]
    assert fleet.run()["outcome"] == "done"
    assert [line["number"] for line in fleet.lines("decision")] == [1, 2, 3]


def test_too_many_hosts_that_are_ill_hold_a_batch_and_with_leave_they_are_left_out(fleet: Fleet) -> None:
    fleet.ill = fleet.begin(batches=[5, "100%"], most_unavailable="1")["order"][:2]
    held = fleet.run()
    assert (held["outcome"], held["tuned"]) == ("held", [])
    assert any("2 of 5 hosts of a stratum can't be reached or aren't healthy" in line for line in fleet.said)
    fleet.begin(resume=held["record"], most_unavailable="50%")
    assert fleet.run()["lines"][0] == "ROLLOUT  done: 8 of 10 hosts tuned"


def test_a_batch_of_which_no_host_can_be_tuned_holds_unless_a_limit_allows_it(fleet: Fleet) -> None:
    fleet.ill = fleet.begin()["order"][:1]
    held = fleet.run()
    assert (held["outcome"], held["tuned"]) == ("held", [])
    assert any("no host of the batch is both healthy and within reach" in line for line in fleet.said)
    fleet.begin(resume=held["record"], most_unavailable="1")
    assert fleet.run()["lines"][0] == "ROLLOUT  done: 9 of 10 hosts tuned"


def test_outside_the_window_nothing_is_tuned(fleet: Fleet) -> None:
    begin, end = (time.strftime("%H:%M", time.gmtime(time.time() + seconds)) for seconds in (7200, 10800))
    fleet.begin(window=[f"{begin}-{end}"])
    ended = fleet.run()
    assert (ended["outcome"], ended["tuned"]) == ("held", [])
    assert f"  no batch begins outside {begin}-{end}" in fleet.said


def test_two_that_begin_in_the_same_second_have_a_name_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 1.8e9)
    names = set()
    for controller in "ab":
        (tmp_path / controller).mkdir()
        names.add(Path(Fleet(tmp_path / controller).begin()["record"]).name)
    assert len(names) == 2, "the lease on a host says by it which rollout has the host"


def test_another_rollout_of_the_same_hosts_is_refused_until_the_first_has_ended(fleet: Fleet) -> None:
    fleet.begin()
    with pytest.raises(NearmetalError, match="hasn't ended: go on with it by -e rollout_resume="):
        fleet.begin()


def test_one_that_was_held_does_not_go_on_beside_another_one(fleet: Fleet) -> None:
    freeze = fleet.folder / "freeze"
    freeze.touch()
    fleet.begin(freeze=str(freeze))
    held = fleet.run()["record"]
    freeze.unlink()
    other = fleet.begin(seed=8)["record"]
    with pytest.raises(NearmetalError, match=f"hasn't ended: go on with it by -e rollout_resume={other}"):
        fleet.begin(resume=held)
    os.unlink(other)
    assert fleet.begin(resume=held)["sizes"] == [1, 5, 4]


def test_to_show_what_would_be_done_writes_nothing(fleet: Fleet) -> None:
    shown = fleet.begin(write=False)["lines"]
    order = fleet.begin()["order"]
    assert shown[:3] == [
        "ROLLOUT  10 hosts in 1 stratum, batches of 1, 5, 4",
        "  metrics: requests; seed 7",
        f"  batch 1: {order[0]}",
    ]
    assert shown[4] == f"  batch 3: {', '.join(order[6:])}"
    assert shown[5] == "  these hosts in these batches: add -e rollout_seed=7, or they are drawn anew"
    assert shown[6] == "  each batch is watched for 0.2 s before its tuning and for 0.3 s, at most 0.5 s, after it"
    assert shown[7] == f"  requests now: {', '.join(f'{name} {1000 + int(name[1:])}' for name in order[:3])}"
    assert fleet.begin(write=False, metrics=[])["lines"][1] == "  no metrics, guards alone decide; seed 7"
    (path,) = (fleet.folder / "reports/rollout").iterdir()
    before = path.read_bytes()
    shown = fleet.begin(write=False, resume=str(path))["lines"]
    assert "  batch 1: " in "\n".join(shown)
    assert "rollout_seed" not in "\n".join(shown)
    assert not fleet.begun["record"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo no route >&2; exit 7", "its command ended with code 7, and said 'no route'"),
        ("echo abc", "its command printed no number, and said 'abc'"),
        ("true", "its command printed no number, and said 'nothing'"),
    ],
)
def test_to_show_it_asks_the_metrics(fleet: Fleet, command: str, why: str) -> None:
    fleet.command = command
    with pytest.raises(NearmetalError, match=rf"^no metric has a value of h\d+ or h\d+ or h\d+: {why}$"):
        fleet.begin(write=False)
    assert not (fleet.folder / "reports").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batches": ["ten"]}, "'ten' is neither a number of hosts nor a share"),
        ({"interval": 0}, r"rollout\.interval must be a number from 0\.1 to 3600, not 0"),
        ({"watch": -1}, r"rollout\.watch must be a number from 0 to 604800, not -1"),
        ({"margin": "100"}, r"rollout\.margin must be a number from 0\.1 to 99, not '100'"),
        ({"watch": -1, "guards": {"oom": "x"}, "window": ["x"], "batches": [2, 1], "metrics": [{}]}, "^6 mistakes:"),
    ],
)
def test_a_wrong_option_is_said_before_anything_is_written(fleet: Fleet, options: Dict[str, Any], words: str) -> None:
    with pytest.raises(NearmetalError, match=words):
        fleet.begin(**options)
    assert not (fleet.folder / "reports").exists()
