"""What was asked of a CMake build against what it really enabled.

Projects turn options off by themselves where a library is missing, and say so in one line among a thousand. A value in
the cache is no proof either: a script may set the plain variable of the same name, which counts in its stead. So the
summary that a project prints when it has configured counts most; then a message that something is left out; then the
cache.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.buildsystem.cmake.cache import is_missing, is_true
from axletree.buildsystem.pytorch.downgrades import DOWNGRADES, Downgrade, option_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from axletree.buildsystem.cmake.cache import Cache

_SUMMARY = re.compile(r"^-- {2,}+([A-Za-z][\w.]*+(?: ++[\w.]++)*+) *+: ?(.*)$")
_SWITCHES = frozenset({"1", "ON", "YES", "TRUE", "Y", "0", "OFF", "NO", "FALSE", "N"})
_PATTERNS = tuple((each, re.compile(each.says.replace(" ", r"\s+"))) for each in DOWNGRADES)
_TROUBLE = re.compile(
    r"not?[- ](?:be )?f(?:in|oun)d|cannot|could ?n[o']t|disab|turn\w{0,20} (?:it )?off|without|unsupported"
    r"|not supported|missing|requires|skipping|not (?:compil|build|us)ing",
    re.IGNORECASE,
)
_REASONS = 3  # lines about a feature that no known message is about
WRITTEN = "-- Build files have been written to: "
"""What CMake prints when it has configured, before the folder."""


class Mismatch(msgspec.Struct, frozen=True, kw_only=True):
    """A feature that differs from the expectation."""

    feature: str
    wanted: str
    found: str | None
    """``None`` if neither the cache nor the summary has such a feature."""
    where: str
    """``summary``, ``CMakeCache.txt:12`` or ``configure log:34``; empty if it was not found."""
    why: tuple[str, ...] = ()
    """Messages of the configure log that explain it."""
    hint: str = ""

    def __str__(self) -> str:
        """One sentence."""
        if self.found is None:
            return f"{self.feature} should be {self.wanted}, but CMake has no variable or feature with this name"
        return f"{self.feature} is {self.found or 'empty'} ({self.where}), not {self.wanted}"


def read_summary(log: Iterable[str]) -> dict[str, str]:
    """Name -> value of the lines ``--   NAME : VALUE``; the last counts."""
    found: dict[str, str] = {}
    for line in log:
        match = _SUMMARY.match(line.rstrip())
        if match is not None:
            found[match[1]] = option_value(match[1], match[2].strip())
    return found


def find_downgrades(log: Sequence[str]) -> tuple[tuple[Downgrade, int], ...]:
    """Known messages in a log, each with the number of its line, counted from 1."""
    found: list[tuple[Downgrade, int]] = []
    for number, line in enumerate(log):
        here = line.strip()
        # A message may go on in the next line; what begins there is found when its turn comes.
        text = f"{here} {log[number + 1].strip()}" if number + 1 < len(log) else here
        for downgrade, pattern in _PATTERNS:
            if any(match.start() < len(here) for match in pattern.finditer(text)):
                found.append((downgrade, number + 1))
    return tuple(found)


def last_run(log: Sequence[str], folder: str | None) -> Sequence[str]:
    """The lines of a log from the last configure of a build folder on; all, where it does not tell where one ended."""
    ends = [number for number, line in enumerate(log) if line.rstrip() == f"{WRITTEN}{folder}"]
    return log[ends[-2] + 1 :] if len(ends) > 1 else log


def check_features(expected: Mapping[str, str], cache: Cache, log: Sequence[str]) -> tuple[Mismatch, ...]:
    """Compare what a build must have with what it has.

    Args:
        expected: CMake variable -> value; ``ON`` and ``OFF`` by CMake's truth, other values as text, ``*`` for anything
            that is set and was found.
        cache: what the configured tree's cache says.
        log: lines that configuring printed; where it holds several runs, the last one counts.

    Returns:
        Every feature that is otherwise, with the messages that explain it; empty if all is as expected.
    """
    run = last_run(log, cache.get("CMAKE_CACHEFILE_DIR"))
    before = len(log) - len(run)
    summary = read_summary(run)
    downgrades = find_downgrades(run)
    found: list[Mismatch] = []
    for feature, wanted in expected.items():
        known = [(each, number) for each, number in downgrades if feature in each.features]
        value, where = _effective(feature, cache, summary, [before + number for _, number in known])
        if value is not None and _holds(wanted, value):
            continue
        why = [_message(run, number) for _, number in known] or _about(feature, run)
        hint = known[0][0].hint if known else _advice(feature, value, logged=bool(log))
        found.append(
            Mismatch(feature=feature, wanted=wanted, found=value, where=where, why=tuple(dict.fromkeys(why)), hint=hint)
        )
    return tuple(found)


def _effective(
    feature: str, cache: Cache, summary: Mapping[str, str], turned_off: Sequence[int]
) -> tuple[str | None, str]:
    entry = cache.entries.get(feature)
    cached = None if entry is None else (entry.value, f"CMakeCache.txt:{entry.line}")
    if feature in summary:
        # The summary prints the variable; a cache that was turned off afterwards is off all the same.
        if entry is not None and cached is not None and entry.type == "BOOL" and not is_true(entry.value):
            return cached
        return summary[feature], "summary"
    if turned_off and (entry is None or is_true(entry.value)):
        return "OFF", f"configure log:{turned_off[-1]}"
    return cached or (None, "")


def _holds(wanted: str, value: str) -> bool:
    if wanted == "*":
        return bool(value) and not is_missing(value)
    if wanted.upper() in _SWITCHES:
        return is_true(value) == is_true(wanted)
    return value == wanted


def _message(log: Sequence[str], number: int) -> str:
    """A message of CMake, which indents and wraps the text of warnings."""
    lines = [log[number - 1]]
    for line in log[number:]:
        if not (line.startswith("  ") and line.strip() and lines[0].startswith("  ")):
            break
        lines.append(line)
    return re.sub(r"\s+", " ", " ".join(lines)).strip()


def _about(feature: str, log: Sequence[str]) -> list[str]:
    """Lines that name a feature and speak of trouble."""
    name = re.compile(rf"(?<![A-Za-z]){re.escape(feature.removeprefix('USE_'))}(?![A-Za-z])", re.IGNORECASE)
    lines = (line.strip() for line in log)
    return [line for line in dict.fromkeys(lines) if name.search(line) and _TROUBLE.search(line)][:_REASONS]


def _advice(feature: str, value: str | None, *, logged: bool) -> str:
    if value is not None:
        return f"look for {feature.removeprefix('USE_')} in the configure log, or change what the recipe expects"
    if logged:
        return (
            f"check the spelling of {feature} in the project's CMakeLists.txt; `axletree cmake-cache` lists all names"
        )
    return (
        f"check the spelling of {feature}; a name from the project's summary can be checked only with the configure log"
    )
