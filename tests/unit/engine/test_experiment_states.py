# Copyright (c) 2026 The nearmetal.ec2 authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States between tuned and untuned: all but one concern, and another tuning."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.experiments import BOTH, THP, Call, Steps, read_ahead, thp
from tests.support.fake_kernel import FakeKernel
from tests.support.fresh_host import fresh


@pytest.fixture
def big(tmp_path: Path) -> FakeKernel:
    return fresh(tmp_path / "big", "nitro_big")


def test_one_concern_is_untuned_and_all_others_stay_tuned(big: FakeKernel, call: Call) -> None:
    steps = Steps(call, big)
    before = (thp(big), read_ahead(big))
    begun = steps("begin", tune=BOTH)["answer"]
    assert {name.partition(".")[0] for name in begun["tested"]} == {"hugepages", "block_storage"}
    for state, pages, ahead in (("untuned", before[0], {"64"}), ("tuned", "never", {"64"})):
        answer = steps("measure", state=state, without="hugepages")["answer"]
        assert (thp(big), read_ahead(big), answer["taken_back"]) == (pages, ahead, [])
    big.written.clear()
    steps("measure", state="tuned", without="hugepages")
    assert [text.split()[0] for path, text in big.written if path == THP] == [before[0], "never"]
    assert not [path for path, _text in big.written if "/queue/" in path], "what isn't asked about isn't written"
    Path(f"{big.root}{THP}").write_text("always madvise [never]")
    taken = steps("look", state="untuned", without="hugepages")["answer"]["taken_back"]
    assert taken == [f"hugepages.thp is never, not {before[0]}"]
    steps("back")
    assert (thp(big), read_ahead(big)) == before
