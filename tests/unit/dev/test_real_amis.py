# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""molecule/ec2 against moto's server: what it creates, what it refuses, and that nothing stays behind."""

from __future__ import annotations

import base64
import json
import re
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Dict, Iterator, List

import pytest
import yaml

from dev import ROOT, real_amis, suites
from tests.support import moto_account
from tests.support.moto_account import NEWEST, Account, play

TAG = "nearmetal:run"
GUIDE = (ROOT / "docs" / "real_amis.md").read_text(encoding="utf-8")
(EXAMPLE,) = [yaml.safe_load(block) for block in re.findall(r"^ *```yaml\n(.*?)^ *```$", GUIDE, re.M | re.S)]
PLATFORMS = EXAMPLE["ec2_platforms"]


@pytest.fixture(scope="module")
def server() -> Iterator[Account]:
    with moto_account.account() as served:
        yield served


@pytest.fixture
def account(server: Account) -> Account:
    return server.fresh()


def reach(*names: str) -> Dict[str, Any]:
    """The variable that puts a host in place of moto's instance, which isn't one."""
    reach = {"address": "127.0.0.1", "port": 2222, "user": "root", "identity_file": "key"}
    return dict.fromkeys(names, reach)


def tags(thing: Dict[str, Any]) -> Dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags", [])}


def instances(client: Any) -> List[Dict[str, Any]]:
    found = client.describe_instances()["Reservations"]
    return [instance for reservation in found for instance in reservation["Instances"]]


def left(client: Any) -> List[str]:
    """Every resource that costs money or allows access, whatever its tags, except those of every account."""
    alive = [instance["InstanceId"] for instance in instances(client) if instance["State"]["Name"] != "terminated"]
    volumes = [volume["VolumeId"] for volume in client.describe_volumes()["Volumes"]]
    groups = [group["GroupName"] for group in client.describe_security_groups()["SecurityGroups"]]
    keys = [key["KeyName"] for key in client.describe_key_pairs()["KeyPairs"]]
    return alive + volumes + [name for name in groups if name != "default"] + keys


def failure_message(done: Any) -> str:
    """The message of the last task that failed."""
    failed = re.findall(r"^(?:fatal|failed): .*? => (\{.*\})$", done.stdout, re.M)
    assert done.returncode, done.stdout
    assert failed, done.stdout
    return str(json.loads(failed[-1])["msg"])


def changing(account: Account) -> List[str]:
    return [call for call in account.calls if not call.startswith(("Describe", "Get", "List"))]


def test_a_run_from_create_to_destroy(account: Account, tmp_path: Path) -> None:
    """With the file of variables of docs/real_amis.md."""
    client = account.client()
    given = {**EXAMPLE, "ec2_caller": "", "ec2_caller_service": f"{account.address}/caller"}
    given["ec2_reach"] = reach(*PLATFORMS)
    started = time.time()
    done = play("create.yml", tmp_path, account.environment(), **given)
    assert done.returncode == 0, done.stdout

    found = {tags(instance)["nearmetal:platform"]: instance for instance in instances(client)}
    assert sorted(found) == PLATFORMS
    for platform, instance in found.items():
        assert instance["MetadataOptions"]["HttpTokens"] == "required"
        assert tags(instance)[TAG] == "a-run"
        ends = datetime.strptime(tags(instance)["nearmetal:ends"], "%Y-%m-%d %H:%M:%S UTC").replace(tzinfo=timezone.utc)
        assert started + 7200 - 1 <= ends.timestamp() <= time.time() + 7200
        arguments = {"InstanceId": instance["InstanceId"]}
        behaviour = client.describe_instance_attribute(Attribute="instanceInitiatedShutdownBehavior", **arguments)
        assert behaviour["InstanceInitiatedShutdownBehavior"]["Value"] == "terminate"
        data = client.describe_instance_attribute(Attribute="userData", **arguments)["UserData"]["Value"]
        assert f"\nOnCalendar={tags(instance)['nearmetal:ends']}\n" in base64.b64decode(data).decode()
        newest = next(name for known, _owner, _arch, name, _day in NEWEST if known == platform)
        (image,) = client.describe_images(ImageIds=[instance["ImageId"]])["Images"]
        assert image["Name"] == newest
        assert instance["InstanceType"] == {"x86_64": "t3.medium", "arm64": "t4g.medium"}[image["Architecture"]]
    volumes = client.describe_volumes()["Volumes"]
    assert [tags(volume)[TAG] for volume in volumes] == ["a-run", "a-run"]
    roots = [instance["BlockDeviceMappings"][0]["Ebs"]["DeleteOnTermination"] for instance in found.values()]
    assert roots == [True, True]
    (group,) = client.describe_security_groups(GroupNames=["a-run"])["SecurityGroups"]
    (rule,) = group["IpPermissions"]
    assert (rule["FromPort"], rule["ToPort"], rule["IpRanges"]) == (22, 22, [{"CidrIp": "198.51.100.7/32"}])
    assert [
        [attached_group["GroupId"] for attached_group in instance["SecurityGroups"]] for instance in found.values()
    ] == [[group["GroupId"]]] * 2
    assert tags(group)[TAG] == tags(client.describe_key_pairs()["KeyPairs"][0])[TAG] == "a-run"
    hosts = yaml.safe_load((tmp_path / "hosts.yml").read_text("utf-8"))
    assert [(host["instance"], host["address"], host["port"]) for host in sorted(hosts, key=str)] == [
        (name, "127.0.0.1", 2222) for name in PLATFORMS
    ]

    # Leftovers of a killed run, and resources of somebody else.
    zone = {"AvailabilityZone": "us-east-1a", "Size": 1}
    for run in ("a-run", "of-another"):
        of_run = [{"ResourceType": "volume", "Tags": [{"Key": TAG, "Value": run}]}]
        other = client.create_volume(TagSpecifications=of_run, **zone)["VolumeId"]
    done = play("destroy.yml", tmp_path, account.environment(), **given)
    assert done.returncode == 0, done.stdout
    assert left(client) == [other]
    assert not (tmp_path / "a-run").exists()
    assert (tmp_path / "hosts.yml").read_text("utf-8") == "[]\n"


def test_a_create_that_fails_half_way_leaves_nothing(account: Account, tmp_path: Path) -> None:
    account.launches_left = 1
    done = play("create.yml", tmp_path, account.environment(), ec2_platforms=PLATFORMS)
    assert "You have requested more vCPU capacity" in failure_message(done)
    assert failure_message(done).startswith("Launch the instances: ")
    assert failure_message(done).endswith("; what had been created is removed.")
    assert account.calls.count("RunInstances") == 2
    assert [instance["State"]["Name"] for instance in instances(account.client())] == ["terminated"]
    assert left(account.client()) == []
    assert not (tmp_path / "a-run").exists()


def test_nothing_is_created_above_the_ceiling(account: Account, tmp_path: Path) -> None:
    """With the whole matrix, so that it also shows which image each platform is."""
    everything = [platform for platform, *_rest in NEWEST]
    given = {"ec2_platforms": everything, "ec2_prices": {"sles_15_x86_64": 0.2, "sles_15_arm64": 0.2}}
    done = play("create.yml", tmp_path, account.environment(), ec2_cost_ceiling=2, ec2_hours=3, **given)
    # 5 t3.medium and 5 t4g.medium, 2 of each with Red Hat's surcharge on 2 vCPUs, SUSE's as given, an address and
    # 15 GiB for each of 16.
    usd = 5 * (0.0416 + 0.0336) + 2 * (0.0416 + 0.0336 + 4 * 0.0144) + 2 * 0.2 + 16 * (0.005 + 15 * 0.00011)
    assert failure_message(done) == (
        f"This run may cost ${3 * usd:.2f} (${usd:.4f} per hour for 3 hours), more than ec2_cost_ceiling, $2.00: "
        "nothing was created."
    )
    chosen = dict(re.findall(r"item=([a-z0-9_]+): ([^)]*)\)", done.stdout))
    assert chosen == {platform: name for platform, _owner, _arch, name, _day in NEWEST}
    assert changing(account) == []


REFUSALS = {
    "a platform that the matrix does not have": (
        {"ec2_platforms": ["debian_13_x86_64", "plan_9_x86_64"]},
        (
            r"ec2_platforms must name some of al2023_x86_64, al2023_arm64, .*, sles_15_arm64; it is debian_13_x86_64, "
            r"plan_9_x86_64\."
        ),
    ),
    "a system whose price is not known": (
        {"ec2_platforms": ["sles_15_x86_64"]},
        (
            r"sles_15_x86_64: the price of t3\.medium in us-east-1 is not known; give its US dollars per hour in "
            r"ec2_prices, under sles_15_x86_64 or t3\.medium\."
        ),
    ),
    "a region whose prices are not known": (
        {"ec2_platforms": ["debian_12_arm64"], "ec2_region": "eu-west-1", "ec2_types": {"arm64": "m7g.large"}},
        (
            r"debian_12_arm64: the price of m7g\.large in eu-west-1 is not known; give its US dollars per hour in "
            r"ec2_prices, under debian_12_arm64 or m7g\.large\."
        ),
    ),
    "a door open to more than the caller": (
        {"ec2_platforms": ["debian_12_arm64"], "ec2_caller": "0.0.0.0/0"},
        r"ec2_caller must be one IPv4 address with /32, as 192\.0\.2\.7/32; it is 0\.0\.0\.0/0\.",
    ),
}


@pytest.mark.parametrize("why", REFUSALS)
def test_it_refuses_in_one_sentence(account: Account, tmp_path: Path, why: str) -> None:
    given, sentence = REFUSALS[why]
    assert re.fullmatch(sentence, failure_message(play("create.yml", tmp_path, account.environment(), **given)))
    assert account.calls == []


def test_a_missing_image_is_reported_in_one_sentence(account: Account, tmp_path: Path) -> None:
    client = account.client()
    for image in client.describe_images(Filters=[{"Name": "name", "Values": ["debian-13-arm64-*"]}])["Images"]:
        client.deregister_image(ImageId=image["ImageId"])
    account.calls.clear()
    assert failure_message(play("create.yml", tmp_path, account.environment(), ec2_platforms=["debian_13_arm64"])) == (
        "debian_13_arm64: in us-east-1 the owner 136693071363 has no image debian-13-arm64-????????-* for arm64."
    )
    assert changing(account) == []


def test_without_credentials_it_says_so_in_one_sentence(account: Account, tmp_path: Path) -> None:
    environment = account.environment()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        del environment[name]
    assert failure_message(play("create.yml", tmp_path, environment, ec2_platforms=PLATFORMS)) == (
        "There are no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or log in as "
        "your organisation does."
    )
    assert account.calls == []


@pytest.mark.parametrize("playbook", ["create.yml", "destroy.yml", "left.yml"])
def test_nothing_runs_without_a_file_of_variables(account: Account, tmp_path: Path, playbook: str) -> None:
    unasked = {**account.environment(), "NEARMETAL_EC2": ""}
    assert failure_message(play(playbook, tmp_path, unasked)) == (
        "molecule/ec2 launches instances that cost money: name your file of variables in NEARMETAL_EC2 "
        "(docs/real_amis.md)."
    )
    assert account.calls == []


def test_the_guide_names_all_variables_and_the_cost_of_its_example() -> None:
    variables, matrix, prices = (
        yaml.safe_load((moto_account.SCENARIO / "vars" / f"{name}.yml").read_text("utf-8"))
        for name in ("settings", "matrix", "prices")
    )
    variables_named = re.findall(r"^\| `(ec2_[a-z_]+)` \|", GUIDE, re.M)
    assert set(variables_named) == set(variables) - {"ec2_caller_service", "ec2_key_file", "ec2_of_the_run"}
    assert all(f"`{system}`" in GUIDE for system in matrix["ec2_systems"])
    table = prices["ec2_price_list"]
    types = [variables["ec2_types"][name] for name in ("x86_64", "arm64")]
    extra_usd = table["public_ipv4"] + 15 * table["volume_gib"]
    usd = sum(table["regions"]["us-east-1"][name]["usd"] + extra_usd for name in types) * variables["ec2_hours"]
    assert f"costs ${usd:.2f} with volumes of 15 GiB" in GUIDE
    assert f"of {table['as_of']} and for us-east-1" in GUIDE


def test_the_guide_names_files_that_exist() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", GUIDE):
        assert (ROOT / "docs" / target).exists(), target


def test_no_suite_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEARMETAL_EC2", "run.yml")
    jobs = [job for group in (*suites.GROUPS.values(), *suites.ON_REQUEST.values()) for job in group()]
    assert "molecule-default" in [job.name for job in jobs]
    assert [job.name for job in jobs if "ec2" in (job.lane, *job.argv)] == []


def test_the_matrix_is_the_one_of_the_images() -> None:
    assert real_amis.matrix() == [platform for platform, *_rest in NEWEST]


def test_the_command_passes_the_platforms_on(tmp_path: Path) -> None:
    given = tmp_path / "run.yml"
    given.write_text("ec2_platforms: [debian_12_arm64, rhel_10_x86_64]\n", "utf-8")
    names = yaml.safe_load(real_amis.environment({"NEARMETAL_EC2": str(given)})["NEARMETAL_EC2_PLATFORMS"])
    assert names == [{"name": "debian_12_arm64"}, {"name": "rhel_10_x86_64"}]


@pytest.mark.parametrize(
    ("named", "text", "sentence"),
    [
        ("", "", "Name your file of variables in NEARMETAL_EC2; docs/real_amis.md says what it holds."),
        ("run.yml", "[]", "run.yml: ec2_platforms names no platform; docs/real_amis.md lists them."),
        ("run.yml", "ec2_platforms: [a, b]", "run.yml: ec2_platforms has no a, b; docs/real_amis.md lists them."),
        ("none.yml", "", "none.yml: No such file or directory."),
        ("run.yml", "a: [", "run.yml is no YAML: line 1."),
    ],
)
def test_the_command_says_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str, text: str, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.yml").write_text(text, "utf-8")
    with pytest.raises(real_amis.SettingsError, match=f"^{re.escape(sentence)}$"):
        real_amis.environment({"NEARMETAL_EC2": named})
