# Copyright (c) 2026 The nearmetal.ec2 authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which settings the commands of a unit, a script or a udev rule make. Pure. PRIVATE to the collection.

Only commands whose whole form is known say a value. What a script computes is None: that it sets something is known.
"""

from __future__ import annotations

import re
import shlex
from collections import ChainMap
from typing import Callable, Container, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from .._number import is_number
from .link_settings import in_full

# A setting and its value: "/sys/…" or "/proc/sys/…", which may hold *, or a lever with the kernel's name of a device:
# "network.rings ens5/rx". `FILE` names a file of lines as in sysctl.d, and `SCRIPT` a program, or a pattern of
# programs, with what it is told; one without a folder is in one of the shell's.
Setting = Tuple[str, Optional[str]]
FILE = "sysctl -p"
SCRIPT = "script"
GOVERNOR = "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
_BIAS = "/sys/devices/system/cpu/cpu*/power/energy_perf_bias"
# Programs that choose a value by themselves, whatever their options: of Ubuntu up to 20.04, and of cpufrequtils.
_CHOOSING = {"set-cpufreq": GOVERNOR, "loadcpufreq": GOVERNOR}
_BEFORE_COMMAND = ("do", "then", "else", "exec", "command", "time", "{", "(", "if", "elif", "while", "until", "!")
_SHELLS = ("sh", "bash", "dash", "ksh", "zsh")
_LANGUAGES = re.compile(r"(?:python|perl|ruby|node)[\d.]*")
# They start the command that comes after their options.
_STARTERS = (
    *("sudo", "env", "nohup", "nice", "ionice", "chrt", "taskset", "timeout", "setsid", "stdbuf", "numactl", "flock"),
    *("systemd-run", "systemd-cat", "run-parts", "runuser", "chronic", "unshare", "xargs", "cloud-init-per"),
    *("busybox", "nsenter", "doas", "setpriv", "pkexec", "systemd-inhibit", "watch", "at", "start-stop-daemon"),
)
# Those that have another root, where only the programs of each distribution are known.
_ROOTS = ("chroot", "docker", "podman", "nerdctl")
_INPUTS = ("-", "--load=-", "/dev/stdin")
_PRINTERS = ("echo", "printf", "cat")
_KNOWN = (
    *("sysctl", "cpupower", "cpufreq-set", "x86_energy_perf_policy", "blockdev", "hdparm", "ethtool", "ip", "ifconfig"),
)
_BEFORE_DEVICE = ("-4", "-6", "link", "l", "set", "s")
_WRITERS = ("tee", "dd", "cp", "install")
_CASE = re.compile(r"^\s*(?:case\s.{0,200}?\sin\s+)?[\w|*\"'-]+\)\s*")
_FUNCTION = re.compile(r"^[ \t]*(?:function[ \t]+)?([\w.-]+)[ \t]*\(\)\s*\{?", re.MULTILINE)
_SHELL = re.compile(
    r"""(?<!\S)(?:\S{0,32}?(?:(?:ba|da|k|z)?sh|su)(?:\s{1,8}[\w-]{1,16}){0,4}?\s+-\w{0,8}c|eval)\s+(["'])(.*)\1"""
)
_HERE = re.compile(r"^([^\n<]*)<<-?[ \t]*[\"']?(\w+)[\"']?(.*)\n((?:.*\n){0,99}?)[ \t]*\2[ \t]*$", re.MULTILINE)
_ARRAY = re.compile(r"\b(\w+\+?=)\(([^()]*)\)")
_OF_ARRAY = re.compile(r"\$\{(\w+)\[[@*]\]\}")
_EITHER = re.compile(r"(.*?)\{([^{}]*,[^{}]*)\}(.*)")  # as the shell expands it
_ASSIGNED = re.compile(r"""(?:export\s+|readonly\s+|local\s+)?(\w+)=("[^"]*"|'[^']*'|\S*)\s*(?:;|$)""")
_LOOP = re.compile(r"for\s+(\w+)\s+in\s+([^;]*)")
_READ_LOOP = re.compile(r"^(.*)\|\s*while\s+(?:IFS=\S*\s+)?read\s+(?:-\w+\s+)*(\w+)")
_SOURCED = re.compile(r"(?:^|[;&{]|\b(?:then|do)\b)\s*(?:\.|source)\s+([^\s;&|]+)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::?-([^${}]*))?\}|(\w+))")
# What scripts compute about their own place, and the files that they list.
_OWN_PATH = re.compile(r"\$\{?BASH_SOURCE(?:\[0\])?\}?")
_OWN_FOLDER = re.compile(r"\$\(dirname (?:-- )?\"?([^\"()]*)\"?\)|`dirname \"?([^`\"]*)\"?`|\$\{0%/\*\}")
_SAME_FOLDER = re.compile(r"\$\(cd (?:-P )?\"?([^\"()&;]*?)\"?\s*(?:&&|;)\s*pwd(?: -P)?\)")
_KERNEL_FILE = re.compile(r"/(?:sys|proc/sys)/[\w./*-]+")
_LISTED = re.compile(r"\$\(((?:ls|find|echo)\s[^()]*)\)|`((?:ls|find|echo)\s[^`]*)`")
_CHANGES = re.compile(r"\b(?:sed|awk|cut|tr|xargs|basename)\b")
# By its last part, a file of the kernel whose folder a script computes.
_ENDS = (
    (re.compile(r".*/((?:queue|bdi)/\w+)"), r"/sys/block/*/\1"),
    (re.compile(r".*/(transparent_hugepage/\w+)"), r"/sys/kernel/mm/\1"),
    (re.compile(r".*/(mtu|tx_queue_len|napi_defer_hard_irqs|gro_flush_timeout)"), r"/sys/class/net/*/\1"),
    (re.compile(r".*/scaling_governor"), GOVERNOR),
)
_COMPUTED = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^}]*\}|\$[\w@*#?]+")
_UNKNOWN = "\0"
_TABLES = {
    "network.rings": ("-G", "--set-ring"),
    "network.coalesce": ("-C", "--coalesce"),
    "network.offloads": ("-K", "--features", "--offload"),
    "network.queues": ("-L", "--set-channels"),
}
_SWITCHES = {"on": "1", "off": "0"}
_LONGEST, _LONGEST_LINE, _LONGEST_WORD, _MOST_VALUES, _MOST_OF_LOOP, _MOST_FILES = 65536, 4096, 512, 4, 64, 16
_DEEPEST = 3  # commands in commands: $(dirname $(readlink …))
_MOST_MEANINGS = 2048  # of the lines of a script whose variables have several values


def settings(
    text: str, variables: Optional[Mapping[str, str]] = None, read: Callable[[str], str] = lambda path: ""
) -> Iterator[Setting]:
    """The settings of a script, in its order; where a variable may have several values, those of each.

    The variable `0` is its own path, `PWD` its folder; `read` gives the text of a file that it reads in.
    """
    known: Dict[str, str] = dict(variables or {})
    others: Dict[str, List[str]] = {}
    branch = False
    functions = set(_FUNCTION.findall(text[:_LONGEST]))
    todo = _lines(text)
    files, meanings_left = _MOST_FILES, _MOST_MEANINGS
    while todo:
        line = todo.pop().strip()
        if not line or line.startswith("#") or len(line) > _LONGEST_LINE:
            continue
        line = _placed(line, known)[:_LONGEST_LINE]
        branch = (branch or line.startswith(("elif", "else"))) and not line.startswith("fi")
        for name, values in _given(line, known):
            several = len(values) <= _MOST_OF_LOOP
            known[name], others[name] = (values[0], values[1:]) if several and values else (_UNKNOWN, [])
        assigned = _ASSIGNED.match(line)
        if assigned is not None:
            name = assigned[1]
            others[name] = [*others.get(name, []), known[name]][:_MOST_VALUES] if branch and name in known else []
            known[name] = _expanded(assigned[2].strip("\"'"), known)
        bare = _CASE.sub("", _FUNCTION.sub("", _SHELL.sub(r"\2", line)))
        changed = re.search(r"(?:^|&&|;)\s*(?:cd|pushd)\s+\"?(/[^\s;&\"]+)", _expanded(bare, known))
        known["PWD"] = changed[1] if changed else known.get("PWD", "")
        several_of = sorted(set(re.findall(r"\w+", bare)).intersection(others))[:_MOST_VALUES]
        more = [ChainMap({name: value}, known) for name in several_of for value in others[name]][:meanings_left]
        meanings_left -= len(more)
        meanings: List[Mapping[str, str]] = [known, *more]
        for values_of in meanings:
            yield from _of_line(_expanded(bare, values_of), known["PWD"], functions)
        for path in _SOURCED.findall(bare):
            paths = dict.fromkeys(_expanded(path.strip("\"'"), values_of) for values_of in meanings)
            texts = [read(_whole(each, known["PWD"])) for each in list(paths)[:files] if "/" in each]
            files -= len(texts)
            functions.update(name for each in texts for name in _FUNCTION.findall(each[:_LONGEST]))
            todo += [part for each in reversed(texts) for part in _lines(each)]


def _lines(text: str) -> List[str]:
    """The lines, the last one first; an array is one text of its words."""
    text = _HERE.sub(_as_arguments, text[:_LONGEST])
    text = _ARRAY.sub(lambda array: f'{array[1]}"{" ".join(words_of(array[2], True))}"', text)
    return _OF_ARRAY.sub(r"$\1", text).replace("\\\n", " ").replace(">|", ">").splitlines()[::-1]


def _as_arguments(document: "re.Match[str]") -> str:
    """Lines that sysctl reads from a here-document, as if each were its argument."""
    if "sysctl" not in document[1] + document[3]:
        return document[0]
    return "\n".join(f"sysctl {shlex.quote(line)}" for line in _pairs(document[4]))


def _pairs(text: str) -> List[str]:
    """The lines `name=value`, as in sysctl.d."""
    return [re.sub(r"\s*=\s*", "=", line.strip()) for line in text.splitlines() if not re.match(r"\s*[#;]", line)]


def _placed(line: str, known: Mapping[str, str]) -> str:
    """The line with the folder of its script, and with the files that a command in it lists."""
    if "$" not in line and "`" not in line:
        return line
    own = known.get("0", "")
    line = _OWN_PATH.sub("$0", line)
    line = _OWN_FOLDER.sub(lambda of: _expanded(of[1] or of[2] or own, known).rpartition("/")[0] or _UNKNOWN, line)
    line = _SAME_FOLDER.sub(r"\1", line)

    def files(command: "re.Match[str]") -> str:
        lists, _sign, changes = (command[1] or command[2]).partition("|")
        return _UNKNOWN if _CHANGES.search(changes) else " ".join(_found(words_of(_expanded(lists, known))))

    return _LISTED.sub(files, line)


def _given(line: str, known: Mapping[str, str]) -> Iterator[Tuple[str, List[str]]]:
    """The variable of a loop, and its values."""
    loop, reads = _LOOP.search(line), _READ_LOOP.search(line)
    if loop is not None:
        whole = _VARIABLE.fullmatch(loop[2].strip('" '))  # a list of any length
        words = known.get(whole[1] or whole[3], "") if whole is not None else _expanded(loop[2], known)
        yield loop[1], words.replace('"', "").split()
    if reads is not None:
        yield reads[2], _found(words_of(_expanded(reads[1].partition("|")[0], known)))


def _found(words: List[str]) -> List[str]:
    """The files that ls, find or echo print; a mark for those that aren't known."""
    program = words[0].rpartition("/")[2] if words else ""
    paths = [word for word in words[1:] if word.startswith("/")]
    if program == "echo":
        return words[1:]
    if program == "find":
        named = [word for option, word in zip(words, words[1:]) if option in ("-name", "-path", "-wholename")]
        return [word if word.startswith("/") else _below(path, word) for path in paths[:1] for word in named]
    listed = [path for path in paths if "-d" in words or re.search(r"[*?\[]", path)]
    return listed if program == "ls" and listed else [_UNKNOWN]


def _below(folder: str, name: str) -> str:
    """A file that find finds by its name: somewhere below, where such a file is only known by its end."""
    somewhere = f"{_UNKNOWN}/{name}"
    return somewhere if any(end.fullmatch(somewhere) for end, _whole in _ENDS) else f"{folder.rstrip('/')}/{name}"


def _whole(path: str, folder: str) -> str:
    """The path from the root on."""
    return path if path.startswith("/") else f"{folder}/{path[2:] if path.startswith('./') else path}"


def _expanded(text: str, known: Mapping[str, str]) -> str:
    """The text with the variables that are known; what is computed becomes a mark."""

    def value(name: "re.Match[str]") -> str:
        if name[2] is not None:
            return (known.get(name[1]) or name[2])[:_LONGEST_WORD]
        return known.get(name[1] or name[3], name[0])[:_LONGEST_WORD]

    text = _VARIABLE.sub(value, text)[:_LONGEST_LINE]
    for _depth in range(_DEEPEST if "$" in text or "`" in text else 0):
        text = _COMPUTED.sub(_UNKNOWN, text)
    return text


def words_of(text: str, comments: bool = False) -> List[str]:
    """The words of a command, as far as its quotes are closed."""
    try:
        return shlex.split(text, comments=comments)
    except ValueError:
        return text.split()


def _of_line(line: str, folder: str, functions: Container[str]) -> Iterator[Setting]:
    said: Optional[str] = None  # what the command before a | prints
    found: List[str] = []  # the files that it lists
    texts: List[str] = []  # the files that it prints
    for command, sign in re.findall(r"((?:[^;|&'\"]|'[^']*'|\"[^\"]*\")+)(\|?)", line.replace("\\;", "")):
        every, paths = _redirected(words_of(command, comments=True))
        if "<" in every[:-1]:
            place = every.index("<")
            texts, every = every[place + 1 : place + 2], every[:place] + every[place + 2 :]
        words = _bare(every)
        listed = _found(words) if words and words[0] in ("find", "ls", "echo") else []
        if words[:1] == ["find"] and "-exec" in words:
            words, found = _bare(words[words.index("-exec") + 1 :]), listed
        elif words and "xargs" in every and "{}" not in (*words, *paths):  # a program that sets nothing leaves no words
            words = [*words, *found]
        if found:
            words, paths = ([word.replace("{}", found[0]) for word in part] for part in (words, paths))
        program = words[0].lstrip("@-+!:").rpartition("/")[2] if words else ""
        if program in _WRITERS:
            targets = words[-1:] if program in ("cp", "install") else words[1:]
            paths += [word[3:] if program == "dd" else word for word in targets if word.startswith(("/", "of=/"))]
        elif program in functions:
            paths += words[1:]
        printed = None
        if program in ("echo", "printf"):
            form, *rest = [word.replace("\\n", "\n") for word in words[1:] if not re.fullmatch("-[neE]+", word)] or [""]
            pieces = re.split("%[sdi]", form) if program == "printf" else [form]
            filled = "".join(piece + word for piece, word in zip(pieces, [*rest, *pieces])) + pieces[-1]
            printed = filled if len(pieces) > 1 else " ".join((form, *rest))
        value = said if program in ("tee", "dd") else printed
        if (_LANGUAGES.fullmatch(program) and {"-c", "-e"} & set(words)) or program in ("awk", "gawk", "mawk"):
            inline = " ".join(words[1:])
            paths += _KERNEL_FILE.findall(inline) if re.search(r"""["'][wa]\+?["']|write|>""", inline) else []
        paths = [each for path in paths for each in _each(path)]
        for path in (path if path[:1] in ("/", _UNKNOWN) else f"{folder}/{path}" for path in paths):
            if path.startswith(("/sys/", "/proc/sys/")):
                yield path.replace(_UNKNOWN, "*"), _known(value)
            elif path.startswith(_UNKNOWN):
                known = (end.sub(whole, path) for end, whole in _ENDS if end.fullmatch(path))
                yield from ((name, _known(value)) for name in known)
        if program == "sysctl" and {*_INPUTS}.intersection(words):
            words = [word for word in words if word not in _INPUTS and word != "-p"] + _pairs(said or "")
            yield from ((FILE, path) for path in texts)
        elif every[:1] in (["at"], ["batch"]) or (program in _SHELLS and sum(word[:1] != "-" for word in words) == 1):
            yield from ((SCRIPT, path) for path in texts)
            for each in (said or "").splitlines():
                yield from _of_line(each, folder, functions)
        for name, word in _of_program(program, words[1:]):
            yield name.replace(_UNKNOWN, "*"), _known(word)
        if program in _SHELLS or _LANGUAGES.fullmatch(program):
            words = [word for word in words if not word.startswith("-")][1:]
        if words and not (program in _KNOWN and "bin/" in words[0]):
            start = _whole(words[0], folder) if "/" in words[0] else words[0]
            if any(word.rpartition("/")[2] == "run-parts" for word in every):
                start = f"{start}/*"
            if start.startswith("/") or re.fullmatch(r"[\w.-]+", start):
                yield SCRIPT, " ".join(map(shlex.quote, (start, *words[1:])))
        said, found = printed if sign else None, listed if sign else []
        texts = words[1:] if sign and program == "cat" else []


def _bare(words: List[str]) -> List[str]:
    """The words of a command without what stands before its program, such as `nice -n 5`."""
    while words:
        if words[0] in _BEFORE_COMMAND or re.fullmatch(r"\w+=\S*", words[0]):
            words = words[1:]
        elif words[0].rpartition("/")[2] in (*_STARTERS, *_ROOTS):
            names = (*_KNOWN, *_WRITERS, *_SHELLS, *_PRINTERS)
            by_path = words[0].rpartition("/")[2] not in _ROOTS
            programs = ((place, word, word.rpartition("/")[2]) for place, word in enumerate(words) if place)
            starts = (place for place, word, name in programs if name in names or (by_path and word[:1] == "/"))
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


def _each(path: str) -> List[str]:
    """The paths that a shell makes of one with braces: /sys/x/{a,b}."""
    parts = _EITHER.fullmatch(path)
    return [path] if parts is None else [f"{parts[1]}{word}{parts[3]}" for word in parts[2].split(",")]


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
            usual = [] if program == "systemd-sysctl" else ["/etc/sysctl.conf"]
            yield from ((FILE, file) for file in files or usual)
        for name, sign, value in (word.partition("=") for word in words if not word.startswith("-")):
            if sign:
                yield f"/proc/sys/{name.strip() if '/' in name else name.strip().replace('.', '/')}", value
    elif program in ("service", "invoke-rc.d") and len(words) > 1:
        yield SCRIPT, " ".join(map(shlex.quote, (f"/etc/init.d/{words[0]}", words[1])))
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
            if word.startswith("/dev/") or (word == _UNKNOWN and sectors != _UNKNOWN):
                half = str(int(sectors) // 2) if is_number(sectors) else None
                yield f"/sys/block/{word.rpartition('/')[2]}/queue/read_ahead_kb", half
    elif program == "ethtool" and len(words) > 2:
        lever = next((lever for lever, options in _TABLES.items() if words[0] in options), "")
        for field, value in zip(words[2::2], words[3::2]) if lever else ():
            if lever == "network.offloads":
                for name in in_full(f"{lever}/{field}"):
                    yield f"{lever} {words[1]}/{name[len(lever) + 1 :]}", _SWITCHES.get(value, value)
            elif lever != "network.queues":
                yield f"{lever} {words[1]}/{field.replace('-', '_')}", _SWITCHES.get(value, value)
            elif field == "combined":
                yield f"{lever} {words[1]}", value
    elif program in ("ip", "ifconfig") and (program == "ifconfig" or {"link", "l"} & set(words)):
        named = [pairs["dev"]] if "dev" in pairs else [word for word in words if word not in _BEFORE_DEVICE]
        for key, lever in (("mtu", "mtu"), ("txqueuelen", "txqueuelen"), ("txqlen", "txqueuelen")):
            if key in pairs and named:
                yield f"network.{lever} {named[0]}", pairs[key]
