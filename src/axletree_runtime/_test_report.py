"""Results of self tests as text, JSON and JUnit's XML."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ._sdk import Sdk

SCHEMA = 1
STATUSES = ("passed", "failed", "skipped", "system")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Result:
    """How one test went."""

    name: str
    group: str
    package: str
    status: str
    text: str
    hint: str
    seconds: float

    def line(self) -> str:
        """``FAILED  load/rocm-sdk-core/amdhip64: what; what to do``."""
        label = {"passed": "passed", "failed": "FAILED", "skipped": "skipped", "system": "SYSTEM"}[self.status]
        what = f": {self.text}" if self.text else ""
        return f"{label:7} {self.name}{what}{f'; {self.hint}' if self.hint else ''}"


def counts(results: Sequence[Result]) -> dict[str, int]:
    """Number of results of each status."""
    return {status: sum(each.status == status for each in results) for status in STATUSES}


def as_json(sdk: Sdk, results: Sequence[Result], seconds: float) -> dict[str, Any]:
    """The report for programs; ``schema`` changes when a field changes its meaning or goes."""
    return {
        "schema": SCHEMA,
        "sdk": sdk.file.sdk,
        "version": sdk.file.version,
        "packages": [package.dist for package in sdk.installed()],
        "seconds": round(seconds, 3),
        **counts(results),
        "results": [{**vars(each), "seconds": round(each.seconds, 3)} for each in results],
    }


def as_text(sdk: Sdk, results: Sequence[Result], seconds: float) -> str:
    """A line for each test that failed, one for each reason why some could not be done, and a summary."""
    lines = [each.line() for each in results if each.status == "failed"]
    for status, label in (("system", "SYSTEM "), ("skipped", "skipped")):
        reasons: dict[tuple[str, str], list[str]] = {}
        for each in results:
            if each.status == status:
                reasons.setdefault((each.text, each.hint), []).append(each.name)
        for (text, hint), names in reasons.items():
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            lines.append(f"{label} {names[0]}{more}: {text}{f'; {hint}' if hint else ''}")
    return "\n".join([*lines, _summary(sdk, results, seconds)]) + "\n"


def _summary(sdk: Sdk, results: Sequence[Result], seconds: float) -> str:
    number = counts(results)
    parts = [f"{number['passed']} passed"]
    if number["failed"]:
        parts.append(f"{number['failed']} failed")
    if number["system"]:
        parts.append(f"{number['system']} not run because system libraries are missing")
    if number["skipped"]:
        parts.append(f"{number['skipped']} skipped")
    return f"{sdk.file.sdk} {sdk.file.version}: {', '.join(parts)} in {seconds:.1f} s"


def as_junit(sdk: Sdk, results: Sequence[Result], seconds: float) -> str:
    """The report as JUnit's XML, a suite for each group."""
    groups: dict[str, list[Result]] = {}
    for each in results:
        groups.setdefault(each.group, []).append(each)
    number = counts(results)
    told = f'tests="{len(results)}" failures="{number["failed"]}" errors="0" time="{seconds:.3f}"'
    name = _quoted(f"{sdk.file.sdk} {sdk.file.version}")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites name={name} {told}>"]
    for group, members in groups.items():
        number = counts(members)
        time = sum(each.seconds for each in members)
        lines.append(
            f'  <testsuite name={_quoted(group)} tests="{len(members)}" failures="{number["failed"]}" errors="0" '
            f'skipped="{number["skipped"] + number["system"]}" time="{time:.3f}">'
        )
        lines += [line for each in members for line in _testcase(each)]
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _testcase(result: Result) -> Iterator[str]:
    subject = result.name.partition("/")[2].partition("/")[2]
    classname = f"{result.group}.{result.package}"
    start = f'    <testcase classname={_quoted(classname)} name={_quoted(subject)} time="{result.seconds:.3f}"'
    if result.status == "passed":
        yield f"{start}/>"
        return
    text = f"{result.text}; {result.hint}" if result.hint else result.text
    yield f"{start}>"
    if result.status == "failed":
        yield f'      <failure type="failed" message={_quoted(result.text)}>{escape(_NOT_XML.sub(" ", text))}</failure>'
    else:
        yield f"      <skipped message={_quoted(text)}/>"
    yield "    </testcase>"


def _quoted(text: str) -> str:
    return quoteattr(_NOT_XML.sub(" ", text))
