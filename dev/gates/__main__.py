# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check every gate: `python -m dev.gates [JUNIT FILE]`."""

from __future__ import annotations

import sys
from pathlib import Path

from dev import ROOT
from dev.gates import Copy, Gate, dates, files, naming, options, python, references, rooms, tasks, writing
from dev.running import junit

GATES: "dict[str, Gate]" = {
    "no-suppressions": python.no_suppressions,
    "no-test-left-out": python.no_test_left_out,
    "budgets": python.budgets,
    "layers": python.layers,
    "planning-is-check-mode": python.planning_is_check_mode,
    "only-the-writing-part-writes": writing.only_the_writing_part_writes,
    "rooms-keep-their-size": rooms.rooms_keep_their_size,
    "crowded-folders": python.crowded_folders,
    "only-the-standard-library": python.only_the_standard_library,
    "no-hidden-failure": tasks.no_hidden_failure,
    "whole-roles": tasks.whole_roles,
    "generated-is-fresh": options.generated_is_fresh,
    "role-variables-arrive": options.role_variables_arrive,
    "concerns-share-their-options": options.concerns_share_their_options,
    "options-have-a-case": options.options_have_a_case,
    "new-options-have-a-fragment": options.new_options_have_a_fragment,
    "known-faults-are-current": dates.known_faults_are_current,
    "pages-of-programs-are-current": dates.pages_of_programs_are_current,
    "sources-are-current": dates.sources_are_current,
    "tests-have-their-place": naming.tests_have_their_place,
    "tests-that-are-named-exist": naming.tests_that_are_named_exist,
    "licence": files.licence,
    "no-traces": files.no_traces,
    "nothing-ignored": files.nothing_ignored,
    "citations": files.citations,
    "ids-stay-inside": files.ids_stay_inside,
    "sources-in-words": files.sources_in_words,
    "references-lead-somewhere": references.references_lead_somewhere,
}


def main(arguments: "list[str]") -> int:
    """Name every place that breaks a rule; 1 if there is one."""
    copy = Copy(ROOT)
    cases = []
    for name, gate in GATES.items():
        problems = gate(copy)
        if problems:
            rule = " ".join((gate.__doc__ or "").split())
            print(f"{name}: {rule}\n" + "".join(f"  {problem}\n" for problem in problems), end="")
        cases.append(junit.Case("gates", name, "failed" if problems else "passed", text="\n".join(problems)))
    if arguments:
        junit.write(Path(arguments[0]), "gates", cases)
    return int(any(case.outcome == "failed" for case in cases))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
