# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The types that a host reports as wrong for a workload, and its suggestions, against the offline table.

The host's rules use names alone; the test decides by the API's data of each type.
"""

from __future__ import annotations

import pytest
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.facts import TypeFacts
from ansible_collections.nearmetal.ec2.plugins.module_utils._cloud.types.table import offline_types
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.kernel_check import WORKLOADS
from ansible_collections.nearmetal.ec2.plugins.module_utils._concerns.kernel_check.instance_types import unsuited

# Hosts of these run no Linux that is tuned, or the table doesn't know their cores.
TYPES = {name: kind for name, kind in offline_types().items() if kind.cores and not name.startswith("mac")}


def wrong(workload: str, kind: TypeFacts) -> bool:
    """Whether the documents advise against the type, by the API's data if possible, else by its name."""
    if kind.burstable:
        return True
    if workload == "sap_hana":
        return "arm64" in kind.architectures
    return "-flex." in kind.instance_type or (kind.cores or 0) < 2


@pytest.mark.parametrize("workload", WORKLOADS)
def test_only_types_that_the_documents_advise_against_are_called_wrong(workload: str) -> None:
    unsuited_types = {name for name, kind in TYPES.items() if unsuited(workload, name, kind.cores) is not None}
    assert unsuited_types == {name for name, kind in TYPES.items() if wrong(workload, kind)}
    assert len(unsuited_types) > 20


@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_suggested_type_exists_and_is_suitable_and_not_smaller(workload: str) -> None:
    broken = {}
    for name, kind in TYPES.items():
        found = unsuited(workload, name, kind.cores)
        if found is None:
            continue
        better = TYPES.get(found.better)
        if better is None:
            broken[name] = f"{found.better} isn't in the table"
        elif wrong(workload, better) or unsuited(workload, found.better, better.cores) is not None:
            broken[name] = f"{found.better} is wrong too"
        elif (better.memory_mib or 0) < (kind.memory_mib or 0) or (better.vcpus or 0) < (kind.vcpus or 0):
            broken[name] = f"{found.better} is smaller"
        elif workload != "sap_hana" and better.architectures[-1] != kind.architectures[-1]:
            broken[name] = f"{found.better} doesn't start this host's image"
    assert broken == {}


def test_an_unknown_type_and_a_host_without_cores_have_no_finding() -> None:
    assert unsuited("hpc", "<b>", 1) is None
    assert unsuited("hpc", "c5.large", None) is None
    assert unsuited("low_latency", "c5.4xlarge", 1) is None, "somebody chose one core of a larger type"


def test_a_type_larger_than_all_that_could_be_named_gets_the_largest_of_them() -> None:
    """The name may be a future type or a mistake of the operator: it doesn't end a run."""
    for name, largest in (("p6e-gb200.36xlarge", "r6i.32xlarge"), ("r9g.192xlarge", "r8i.96xlarge")):
        found = unsuited("sap_hana", name, 72)
        assert found is not None
        assert found.better == largest
