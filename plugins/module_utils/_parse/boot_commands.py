# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which settings the commands of a unit, a script or a udev rule make. Pure. PRIVATE to the collection.

Only commands whose whole form is known say a value. What a script computes is None: that it sets something is known.
"""

from __future__ import annotations

import re
import shlex
from typing import Container, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .._number import is_number

# A setting and its value: "/sys/…" or "/proc/sys/…", which may hold *, or a lever with the kernel's name of a device:
# "network.rings ens5/rx". `FILE` names a file of lines as in sysctl.d, and `SCRIPT` a program with what it is told.
Setting = Tuple[str, Optional[str]]
FILE = "sysctl -p"
SCRIPT = "script"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
_BIAS = "/sys/devices/system/cpu/cpu*/power/energy_perf_bias"
# Programs that choose a value by themselves, whatever their options: of Ubuntu up to 20.04, and of cpufrequtils.
_CHOOSING = {"set-cpufreq": GOVERNOR, "loadcpufreq": GOVERNOR}
_BEFORE_COMMAND = ("do", "then", "else", "exec", "command", "time", "{", "(", "if", "!")
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh", ".", "source")
# They start the command that comes after their options.
_STARTERS = (
    *("sudo", "env", "nohup", "nice", "ionice", "chrt", "taskset", "timeout", "setsid", "stdbuf", "numactl", "flock"),
    *("systemd-run", "systemd-cat", "run-parts", "runuser", "chronic", "unshare", "xargs", "cloud-init-per"),
)
_KNOWN = (
    "sysctl",
    "cpupower",
    "cpufreq-set",
    "x86_energy_perf_policy",
    "blockdev",
    "hdparm",
    "ethtool",
    "ip",
    "ifconfig",
)
_BEFORE_DEVICE = ("-4", "-6", "link", "l", "set", "s")
_WRITERS = ("tee", "dd", "cp", "install")
_CASE = re.compile(r"^\s*(?:case\s.{0,200}?\sin\s+)?[\w|*\"'-]+\)\s*")
_FUNCTION = re.compile(r"^[ \t]*(?:function[ \t]+)?([\w.-]+)[ \t]*\(\)\s*\{?", re.MULTILINE)
_SHELL = re.compile(r"""(?<!\S)\S{0,32}?(?:ba|da|k|z)?sh\s+-\w{0,8}c\s+(["'])(.*)\1""")
_ASSIGNED = re.compile(r"""(?:export\s+|readonly\s+|local\s+)?(\w+)=("[^"]*"|'[^']*'|\S*)\s*(?:;|$)""")
_LOOP = re.compile(r"for\s+(\w+)\s+in\s+([^;]*)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_COMPUTED = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^}]*\}|\$[\w@*#?]+")
_UNKNOWN = "\0"
_TABLES = {
    "network.rings": ("-G", "--set-ring"),
    "network.coalesce": ("-C", "--coalesce"),
    "network.offloads": ("-K", "--features", "--offload"),
    "network.queues": ("-L", "--set-channels"),
}
_SWITCHES = {"on": "1", "off": "0"}
_LONGEST, _LONGEST_LINE, _LONGEST_WORD, _MOST_VALUES = 65536, 4096, 512, 4


def settings(text: str, variables: Optional[Mapping[str, str]] = None) -> Iterator[Setting]:
    """The settings of a script, in its order; where branches give a variable several values, those of each."""
    known: Dict[str, str] = dict(variables or {})
    others: Dict[str, List[str]] = {}
    branch = False
    functions = set(_FUNCTION.findall(text[:_LONGEST]))
    for raw in text[:_LONGEST].replace("\\\n", " ").splitlines():
        line = raw.strip()
        if not line or line.startswith("#") or len(line) > _LONGEST_LINE:
            continue
        branch = (branch or line.startswith(("elif", "else"))) and not line.startswith("fi")
        loop = _LOOP.search(line)
        if loop is not None:
            words = _expanded(loop[2], known).split()
            known[loop[1]] = words[0] if len(words) == 1 else _UNKNOWN
        assigned = _ASSIGNED.match(line)
        if assigned is not None:
            name = assigned[1]
            others[name] = [*others.get(name, []), known[name]][:_MOST_VALUES] if branch and name in known else []
            known[name] = _expanded(assigned[2].strip("\"'"), known)
        bare = _CASE.sub("", _FUNCTION.sub("", _SHELL.sub(r"\2", line)))
        changed = re.match(r"(?:cd|pushd)\s+(/\S+)", bare)
        known["PWD"] = changed[1] if changed else known.get("PWD", "")
        yield from _of_line(_expanded(bare, known), known["PWD"], functions)
        for name in sorted(set(re.findall(r"\w+", bare)).intersection(others))[:_MOST_VALUES]:
            for value in others[name]:
                yield from _of_line(_expanded(bare, {**known, name: value}), known["PWD"], functions)


def words_of(text: str, comments: bool = False) -> List[str]:
    """The words of a command, as far as its quotes are closed."""
    try:
        return shlex.split(text, comments=comments)
    except ValueError:
        return text.split()


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """The text with the variables that are known; what is computed becomes a mark."""
    text = _VARIABLE.sub(lambda name: known.get(name[1] or name[2], name[0])[:_LONGEST_WORD], text)
    return _COMPUTED.sub(_UNKNOWN, text[:_LONGEST_LINE])[:_LONGEST_LINE]


def _of_line(line: str, folder: str, functions: Container[str]) -> Iterator[Setting]:
    said: Optional[str] = None  # what the command before a | prints
    for command, sign in re.findall(r"((?:[^;|&'\"]|'[^']*'|\"[^\"]*\")+)(\|?)", line):
        words, paths = _redirected(_bare(words_of(command, comments=True)))
        words = _bare(words)
        program = words[0].lstrip("@-+!:").rpartition("/")[2] if words else ""
        if program in _WRITERS:
            paths += [word[3:] if program == "dd" else word for word in words[1:] if word.startswith(("/", "of=/"))]
        elif program in functions:
            paths += words[1:]
        printed = None
        if program in ("echo", "printf"):
            form, *rest = [word.replace("\\n", "") for word in words[1:] if not re.fullmatch("-[neE]+", word)] or [""]
            pieces = re.split("%[sdi]", form) if program == "printf" else [form]
            filled = "".join(piece + word for piece, word in zip(pieces, [*rest, *pieces])) + pieces[-1]
            printed = filled if len(pieces) > 1 else " ".join((form, *rest))
        value = said if program in ("tee", "dd") else printed
        for path in (path if path.startswith("/") else f"{folder}/{path}" for path in paths):
            if path.startswith(("/sys/", "/proc/sys/")):
                yield path.replace(_UNKNOWN, "*"), _known(value)
        for name, word in _of_program(program, words[1:]):
            yield name.replace(_UNKNOWN, "*"), _known(word)
        if program in _SHELLS:
            words = [word for word in words if not word.startswith("-")][1:]
        if words and words[0].startswith("/") and not (program in _KNOWN and "bin/" in words[0]):
            yield SCRIPT, " ".join(map(shlex.quote, words))
        said = printed if sign else None


def _bare(words: List[str]) -> List[str]:
    """The words of a command without what stands before its program, such as `nice -n 5`."""
    while words:
        if words[0] in _BEFORE_COMMAND or re.fullmatch(r"\w+=\S*", words[0]):
            words = words[1:]
        elif words[0].rpartition("/")[2] in _STARTERS:
            names = (*_KNOWN, *_WRITERS, *_SHELLS)
            starts = (place for place, word in enumerate(words) if place and (word in names or word.startswith("/")))
            words = words[next(starts, len(words)) :]
        else:
            break
    return words


def _redirected(words: Sequence[str]) -> Tuple[List[str], List[str]]:
    """The words without redirections, and the files that these name."""
    kept: List[str] = []
    paths: List[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        head, sign, path = word.partition(">")
        if not sign or head not in ("", "1"):
            kept.append(word)
            continue
        path = path.lstrip(">|") or (rest.pop(0) if rest else "")
        paths.append(path)
    return kept, paths


def _known(value: Optional[str]) -> Optional[str]:
    return None if value is None or _UNKNOWN in value else value.strip()


def _of_program(program: str, words: List[str]) -> Iterator[Setting]:
    pairs = dict(zip(words, words[1:]))
    if program in _CHOOSING:
        yield _CHOOSING[program], None
    elif program in ("sysctl", "systemd-sysctl"):
        reads = [word for word in words if re.match(r"-[A-Za-z]*[pf]|--(?:load|file|system)", word)]
        files = [word[word.index("/") :] for word in words if word.startswith("/") or (word in reads and "/" in word)]
        if reads or program == "systemd-sysctl":
            yield from ((FILE, file) for file in files or ["/etc/sysctl.conf"])
        for name, sign, value in (word.partition("=") for word in words if not word.startswith("-")):
            if sign:
                yield f"/proc/sys/{name.strip() if '/' in name else name.strip().replace('.', '/')}", value
    elif program in ("cpupower", "cpufreq-set"):
        options = {**pairs, **dict(word.split("=", 1) for word in words if "=" in word)}
        if _UNKNOWN in "".join(words):
            yield GOVERNOR, None
        for names, path in ((("-g", "--governor"), GOVERNOR), (("-b", "--perf-bias"), _BIAS)):
            yield from ((path, options[name]) for name in names if name in options)
    elif program == "x86_energy_perf_policy" and words:
        yield _BIAS, words[-1] if words[-1].isdigit() else None
    elif program in ("blockdev", "hdparm"):
        options = {**{word[:2]: word[2:] for word in words if re.fullmatch(r"-a\d+", word)}, **pairs}
        sectors = next((options[name] for name in ("--setra", "--setfra", "-a") if name in options), "")
        for word in words if is_number(sectors) or sectors == _UNKNOWN else ():
            if word.startswith("/dev/"):
                half = str(int(sectors) // 2) if is_number(sectors) else None
                yield f"/sys/block/{word.rpartition('/')[2]}/queue/read_ahead_kb", half
    elif program == "ethtool" and len(words) > 2:
        lever = next((lever for lever, options in _TABLES.items() if words[0] in options), "")
        for field, value in zip(words[2::2], words[3::2]) if lever else ():
            if lever != "network.queues":
                yield f"{lever} {words[1]}/{field.replace('-', '_')}", _SWITCHES.get(value, value)
            elif field == "combined":
                yield f"{lever} {words[1]}", value
    elif program in ("ip", "ifconfig") and (program == "ifconfig" or {"link", "l"} & set(words)):
        named = [pairs["dev"]] if "dev" in pairs else [word for word in words if word not in _BEFORE_DEVICE]
        for key, lever in (("mtu", "mtu"), ("txqueuelen", "txqueuelen"), ("txqlen", "txqueuelen")):
            if key in pairs and named:
                yield f"network.{lever} {named[0]}", pairs[key]
