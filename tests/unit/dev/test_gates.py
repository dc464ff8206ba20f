# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each gate names a file that breaks its rule and passes a file that keeps it."""

from __future__ import annotations

import json
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest

from dev.gates import Copy, rooms
from dev.gates.__main__ import GATES
from dev.gates.dates import TODAY

LICENCE = "# SPDX-License-Identifier: GPL-3.0-or-later\n"
UTILS = "plugins/module_utils"
IMPORT = "from .."
# The forbidden words are put together here, so that this file keeps the rules that it tests.
OFF = "no" + "qa"
IGNORES = "- name: A\n  ignore_unreachable: true\n  register: a_result\n"
NO_CHANGE = "- name: Do\n  {}\n  changed_when: false\n"
SOURCES = "plugins/plugin_utils/_forms/sources.json"
KNOWN_FAULTS = f"{UTILS}/_concerns/kernel_check/advisories.py"
A_PROGRAM = f"{UTILS}/_programs/redis.py"
YESTERDAY, TOMORROW = TODAY - timedelta(days=1), TODAY + timedelta(days=1)


def page(read: str, again: str) -> str:
    """A file with the page of a program."""
    return f"P = Page(reference='x', read='{read}', again='{again}')\n"


def fault(checked: object, expires: object) -> str:
    """The entry of a known fault with these days."""
    return f"A = (Advisory(name='x', checked='{checked}', expires='{expires}'),)\n"


def source(checked: object) -> str:
    """A table of sources with one page, read on this day."""
    return json.dumps({"x": {"url": "https://example.com/", "title": "x", "checked": str(checked)}})


# gate, file, content that breaks the rule, content that keeps it
CASES = [
    ("no-suppressions", "lab/a.py", f"x = 1  # {OFF}\n", f"x = '{OFF}'\n"),
    ("no-suppressions", "lab/a.py", "x = 1  # type: " + "ignore\n", "x: int = 1  # the type matters\n"),
    ("no-suppressions", "roles/x/tasks/main.yml", f"- name: A  # {OFF}\n", "- name: A  # why\n"),
    ("no-test-left-out", "tests/test_a.py", "@pytest.mark.xfail\ndef test(): ...\n", "def test(): ...\n"),
    ("no-test-left-out", "tests/test_a.py", "pytest.importorskip('x')\n", "import pytest\n"),
    ("no-test-left-out", "tests/conftest.py", "collect_ignore = []\n", "collected = []\n"),
    ("no-test-left-out", "molecule/a/tests/test_a.py", "time.sleep(1)\n", "wait()\n"),
    ("budgets", "lab/a.py", "x = 1\n" * 401, "x = 1\n" * 400),
    ("budgets", "plugins/modules/a.py", "x = 1\n" * 301, "x = 1\n" * 300),
    ("budgets", "plugins/modules/a.py", "def main():\n" + "    x = 1\n" * 40, "def main():\n" + "    x = 1\n" * 39),
    ("budgets", "roles/x/tasks/main.yml", "- a\n" * 41, "- a\n" * 40),
    ("layers", f"{UTILS}/_parse/a.py", f"{IMPORT}_facts.b import c\n", f"{IMPORT}_error import c\n"),
    ("layers", f"{UTILS}/_concerns/a.py", f"{IMPORT} import _engine\n", f"{IMPORT} import _facts\n"),
    ("layers", f"{UTILS}/_parse/a.py", "from ...plugin_utils import _clean\n", f"{IMPORT}_error import c\n"),
    ("layers", "plugins/plugin_utils/_report/a.py", "from .._forms import b\n", "from .._prove import b\n"),
    ("layers", "plugins/action/a.py", "from ansible_collections.nearmetal.ec2 import b\n", f"{IMPORT} import b\n"),
    ("layers", "plugins/modules/a.py", f"{IMPORT} import b\n", "from ansible_collections.nearmetal.ec2 import b\n"),
    (
        "planning-is-check-mode",
        f"{UTILS}/_cloud/a.py",
        "def answer(options, check): ...\n",
        "def answer(options): ...\n",
    ),
    (
        "planning-is-check-mode",
        "plugins/modules/a.py",
        "if not module.check_mode:\n    tune()\n",
        "(forecast if module.check_mode else tune)()\n",
    ),
    ("planning-is-check-mode", "plugins/action/a.py", "a() if task.check_mode else b()\n", "a() if b else c()\n"),
    ("only-the-writing-part-writes", f"{UTILS}/_facts/a.py", "open('x', 'w')\n", "open('x')\n"),
    ("only-the-writing-part-writes", f"{UTILS}/_facts/a.py", "import subprocess\n", "import socket\n"),
    ("only-the-writing-part-writes", f"{UTILS}/_concerns/a.py", "os.unlink('x')\n", "os.path.join('x')\n"),
    ("only-the-writing-part-writes", f"{UTILS}/_agent/a.py", "from os import unlink\n", "from os import path\n"),
    ("only-the-writing-part-writes", f"{UTILS}/_agent/a.py", "host.command(['x'])\n", "command(['x'])\n"),
    ("only-the-writing-part-writes", "plugins/modules/a.py", "lever.write(host, 'x')\n", "lever.read(host, 'x')\n"),
    ("only-the-standard-library", f"{UTILS}/_facts/a.py", "import yaml\n", "import json\n"),
    ("only-the-standard-library", f"{UTILS}/_engine/a.py", "import boto3\n", "import fcntl\n"),
    ("no-hidden-failure", "playbooks/a.yml", "- name: A\n  ignore_errors: true\n", "- name: A\n"),
    ("no-hidden-failure", "playbooks/a.yml", IGNORES, f"{IGNORES}- fail:\n  when: a_result is unreachable\n"),
    ("no-hidden-failure", "roles/x/tasks/main.yml", "- name: A\n  failed_when: false\n", "- failed_when: rc > 1\n"),
    (
        "no-hidden-failure",
        "molecule/a/verify.yml",
        NO_CHANGE.format("ansible.builtin.command: sysctl -w a=1"),
        NO_CHANGE.format("ansible.builtin.command: cat /proc/cpuinfo"),
    ),
    (
        "no-hidden-failure",
        "molecule/a/verify.yml",
        NO_CHANGE.format("ansible.builtin.shell: cat /proc/cpuinfo"),
        NO_CHANGE.format("ansible.builtin.command: {argv: [systemctl, is-active, x]}"),
    ),
    ("no-hidden-failure", "playbooks/a.yml", "- shell: x || true\n", "- command: x\n"),
    ("known-faults-are-current", KNOWN_FAULTS, fault(YESTERDAY, YESTERDAY), fault(YESTERDAY, TODAY)),
    ("known-faults-are-current", KNOWN_FAULTS, fault(TOMORROW, TOMORROW), fault(TODAY, TOMORROW)),
    (
        "known-faults-are-current",
        KNOWN_FAULTS,
        fault(TODAY, TODAY + timedelta(days=731)),
        fault(TODAY, TODAY + timedelta(days=730)),
    ),
    ("known-faults-are-current", KNOWN_FAULTS, fault("soon", TOMORROW), fault(TODAY, TODAY)),
    ("known-faults-are-current", KNOWN_FAULTS, "A = (Advisory(name='x'),)\n", fault(TODAY, TODAY)),
    ("sources-are-current", SOURCES, source(TODAY - timedelta(days=366)), source(TODAY - timedelta(days=365))),
    ("pages-of-programs-are-current", A_PROGRAM, page(YESTERDAY, YESTERDAY), page(YESTERDAY, TODAY)),
    ("pages-of-programs-are-current", A_PROGRAM, page(TOMORROW, TOMORROW), page(TODAY, TOMORROW)),
    ("tests-have-their-place", "tests/unit/docs/test_a.py", "", None),
    ("tests-have-their-place", "tests/unit/test_a.py", "", None),
    ("tests-that-are-named-exist", "docs/a.md", "tests/unit/" + "b/test_c.py", "tests/unit/b"),
    ("licence", "dev/a.py", "x = 1\n", LICENCE),
    ("no-traces", "README.md", "see /" + "work/main\n", "see /var/lib\n"),
    ("ids-stay-inside", "roles/x/README.md", "Faster (S0" + "-12).\n", "Faster (AWS, 2017).\n"),
    ("no-traces", "lab/a.py", "# TO" + "DO\n", "# done\n"),
    ("nothing-ignored", "pyproject.toml", "[tool.ruff.lint]\nignore = ['E1']\n", "[tool.ruff.lint]\nselect = ['E1']\n"),
    ("nothing-ignored", ".ansible-lint", "skip_list: [yaml]\n", "profile: production\n"),
    ("nothing-ignored", "tests/sanity/ignore-2.19.txt", "x\n", None),
    ("nothing-ignored", "tests/sanity/ignore-2.21.txt", "a.py pylint:b\n", "a.py pylint:b # why\n"),
    ("nothing-ignored", "tests/sanity/ignore-2.21.txt", "a.py pylint:b # why\n" * 6, "a.py pylint:b # why\n" * 5),
]


def copy_with(root: Path, **contents: str) -> Copy:
    """A working copy with these files."""
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    for name, content in contents.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return Copy(root)


@pytest.mark.parametrize(("gate", "name", "bad", "good"), CASES)
def test_a_gate_names_the_file_that_breaks_its_rule(
    tmp_path: Path, gate: str, name: str, bad: str, good: "str | None"
) -> None:
    problems = GATES[gate](copy_with(tmp_path / "bad", **{name: bad}))
    assert [problem for problem in problems if problem.startswith(name)]
    kept = {} if good is None else {name: good}
    assert GATES[gate](copy_with(tmp_path / "good", **kept)) == []


def test_a_folder_whose_imports_nobody_limits_is_named(tmp_path: Path) -> None:
    problems = GATES["layers"](copy_with(tmp_path, **{f"{UTILS}/_new/a.py": ""}))
    assert problems == [f"{UTILS}/_new: dev/gates/python.py doesn't say what it may import"]


@pytest.mark.parametrize("room", ["plugins/plugin_utils/_report", f"{UTILS}/_levers"])
def test_files_that_import_each_other_are_named_wherever_they_do_so(room: str, tmp_path: Path) -> None:
    late = "def a():\n    from .b import b\n    return b\n"
    typed = "if TYPE_CHECKING:\n    from . import c\n"
    files = {f"{room}/a.py": late, f"{room}/b.py": typed, f"{room}/c.py": "from .a import a\n", f"{room}/d.py": late}
    [problem] = GATES["layers"](copy_with(tmp_path, **files))
    assert problem.startswith("these files import each other: ")
    assert {name for name in files if name in problem} == {f"{room}/{name}.py" for name in "abc"}


def test_what_may_write_is_counted_and_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = '"""A\nlever."""\n\nimport os\n\n# why\nPATH = os.path.join(\n    "a",\n)\n'
    files = {f"{UTILS}/_levers/a.py": code, f"{UTILS}/_levers/__init__.py": "", f"{UTILS}/_engine/plan.py": code}
    copy = copy_with(tmp_path, **files)
    assert rooms.sizes(copy)["what may write"] == rooms.Size(lines=9, code=3, files=1)
    assert rooms.rooms_keep_their_size(copy) == []
    monkeypatch.setitem(rooms.ROOMS["sizes"]["what may write"], "most", {"lines": 7, "code": 3})
    assert [problem.split(";")[0] for problem in rooms.rooms_keep_their_size(copy)] == [
        "what may write: 9 lines, 2 more than allowed"
    ]


def test_a_right_to_write_that_nobody_uses_is_named(tmp_path: Path) -> None:
    problems = GATES["only-the-writing-part-writes"](copy_with(tmp_path, **{f"{UTILS}/_levers/a.py": "x = 1\n"}))
    assert "dev/gates/rooms.toml: _facts/ has no use of socket: remove it" in problems
    assert "dev/gates/rooms.toml: _engine/apply.py names no file" in problems
    assert not [problem for problem in problems if "_levers/ " in problem]


@pytest.mark.parametrize(
    ("folder", "count", "crowded"),
    [
        (f"{UTILS}/_levers", 16, False),
        (f"{UTILS}/_levers", 17, True),
        (f"{UTILS}/_facts", 17, False),
        ("dev", 17, True),
        ("tests/support/kernel", 17, True),
        ("tests/lab/hosts", 17, True),
        ("lab", 17, True),
        ("plugins/modules", 17, False),
        ("plugins/modules/parts", 17, True),
    ],
)
def test_a_folder_with_too_many_files_is_named(tmp_path: Path, folder: str, count: int, crowded: bool) -> None:
    files = {f"{folder}/file{number}.{('py', 'css')[number % 2]}": "" for number in range(count)}
    copy = copy_with(tmp_path, **files)
    assert GATES["crowded-folders"](copy) == [f"{folder}: 17 files, at most 16"] * crowded


# test → the file that it is named after
PLACES = [
    ("tests/unit/engine/test_run.py", f"{UTILS}/_engine/run.py"),
    ("tests/unit/engine/run/test_killed.py", f"{UTILS}/_engine/run.py"),
    ("tests/unit/benchmark/test_host.py", f"{UTILS}/_benchmark/host/disks.py"),
    ("tests/unit/report/test_page.py", "plugins/plugin_utils/_report/page.py"),
    ("tests/unit/filter/test_sizing.py", "plugins/filter/sizing.py"),
    ("tests/unit/docs/audit/test_guide.py", "docs/audit.md"),
    ("tests/unit/test_words.py", f"{UTILS}/_words.py"),
    ("tests/unit/test_readme.py", "README.md"),
]


@pytest.mark.parametrize(("test", "file"), PLACES)
def test_a_test_may_be_named_after_a_file_only_while_the_file_is_there(tmp_path: Path, test: str, file: str) -> None:
    gate = GATES["tests-have-their-place"]
    assert gate(copy_with(tmp_path / "both", **{test: "", file: ""})) == []
    assert gate(copy_with(tmp_path / "alone", **{test: ""})) == [f"{test}: named after no file"]


def test_a_test_of_a_room_is_not_named_after_a_file_beside_the_rooms(tmp_path: Path) -> None:
    test = "tests/unit/ansible/test_artifacts.py"
    files = {"ansible.cfg": "", "plugins/plugin_utils/_ansible/results.py": "", test: ""}
    assert GATES["tests-have-their-place"](copy_with(tmp_path, **files)) == [f"{test}: named after no file"]


ROLE = {
    "roles/x/README.md": "x",
    "roles/x/defaults/main.yml": "x_a: 1\n",
    "roles/x/meta/main.yml": "{}",
    "roles/x/tasks/main.yml": "[]",
    "roles/x/meta/argument_specs.yml": "argument_specs: {main: {options: {x_a: {type: int, default: 1}, x_b: {}}}}",
}


def test_a_whole_role_passes(tmp_path: Path) -> None:
    copy = copy_with(tmp_path, **ROLE)
    assert GATES["whole-roles"](copy) == []


@pytest.mark.parametrize("name", sorted(ROLE))
def test_a_role_without_one_of_its_files_is_named(tmp_path: Path, name: str) -> None:
    rest = {key: value for key, value in ROLE.items() if key != name}
    assert GATES["whole-roles"](copy_with(tmp_path, **rest)) == [f"{name}: missing"]


CLASS = "class Knob(NamedTuple):\n    name: str\n    reference: str\n"


@pytest.mark.parametrize(
    ("code", "unknown"),
    [
        ("Finding('x', reference='AWS, 2017; RFC 6298')\n", ""),
        ("Finding('x', reference='docs/unit.md#the-timer')\n", ""),
        ("Finding('x', reference='docs/unit.md#the-clock')\n", "'docs/unit.md#the-clock' is no heading of that page"),
        (
            "Finding('x', reference='docs/none.md')\n",
            "'docs/none.md' is not in plugins/plugin_utils/_forms/sources.json",
        ),
        ("Finding('x', reference='A rumor')\n", "'A rumor' is not in plugins/plugin_utils/_forms/sources.json"),
        ("REFERENCE = 'AWS, 2017; A rumor'\n", "'A rumor' is not in plugins/plugin_utils/_forms/sources.json"),
        (f"{CLASS}Knob('x', 'A rumor')\n", "'A rumor' is not in plugins/plugin_utils/_forms/sources.json"),
        (
            f"{CLASS}GUIDE = 'A rumor'\nKnob('x', GUIDE)\n",
            "'A rumor' is not in plugins/plugin_utils/_forms/sources.json",
        ),
    ],
)
def test_a_reference_without_an_address_is_named(tmp_path: Path, code: str, unknown: str) -> None:
    entry = {"url": "https://example.com/", "title": "A page", "checked": "2026-11-25"}
    table = {"AWS, 2017": {**entry, "url": "docs/unit.md", "checked": ""}, "RFC 6298": entry}
    contents = {
        SOURCES: json.dumps(table),
        "docs/unit.md": "# The unit\n\n## The timer\n",
        "plugins/a.py": "REFERENCE = 'AWS, 2017; RFC 6298'\n",
        "plugins/b.py": code,
    }
    problems = GATES["references-lead-somewhere"](copy_with(tmp_path, **contents))
    assert [problem.partition(": ")[2] for problem in problems] == ([unknown] if unknown else [])


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({"url": "https://example.com/", "title": "A page", "checked": "soon"}, "soon is no day such as 2026-11-25"),
        ({"url": "example.com", "title": "A page", "checked": ""}, "example.com is neither an address nor a page"),
        ({"url": "https://example.com/", "title": "", "checked": ""}, "needs url, title and checked"),
        ({"url": "https://example.com/", "title": "A page", "checked": ""}, "needs the day on which somebody read it"),
        ({"url": "https://example.com/", "title": "A page", "checked": "2026-11-25"}, "no reference names it"),
    ],
)
def test_an_entry_of_the_table_of_sources_that_is_wrong_is_named(
    tmp_path: Path, entry: "dict[str, str]", problem: str
) -> None:
    copy = copy_with(tmp_path, **{SOURCES: json.dumps({"A rumor": entry})})
    assert problem in " ".join(GATES["references-lead-somewhere"](copy))


@pytest.mark.parametrize(
    ("cited", "known"), [("clock", True), ("cpu-credits", True), ("2-1-clock", False), ("cpu", False), ("rings", False)]
)
def test_a_cited_heading_that_is_missing_is_named(tmp_path: Path, cited: str, known: bool) -> None:
    guide = {"docs/ec2.md": "# True\n\n## Clock\n\n## CPU credits\n"}
    code = {"plugins/a.py": "# As Netflix does, docs/ec2" + f".md#{cited}, and AWS.\n"}
    expected = [] if known else [f"plugins/a.py:1: docs/ec2.md has no section {cited}"]
    assert GATES["citations"](copy_with(tmp_path, **guide, **code)) == expected


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("plugins/a.py", "# docs/ec2{}\nREFERENCE = 'AWS, 2017'\n", []),
        ("plugins/a.py", "REFERENCE = 'AWS, 2017; docs/ec2{}'\n", ["plugins/a.py:1: AWS, 2017; docs/ec2{}"]),
        ("playbooks/web.yml", "# docs/ec2{}\n", ["playbooks/web.yml:1: # docs/ec2{}"]),
    ],
)
def test_a_link_instead_of_the_source_in_operators_text_is_named(
    tmp_path: Path, name: str, text: str, named: "list[str]"
) -> None:
    section = ".md#clock"
    copy = copy_with(tmp_path, **{name: text.format(section)})
    assert GATES["sources-in-words"](copy) == [problem.format(section) for problem in named]
