"""``rocm-sdk doctor``: what of this host, its variables and the installation is in the way, and the next command.

Nothing is changed, loaded into this process or asked of a GPU. Findings are sorted, the worst first; ``error`` means
that programs of the SDK fail or use the wrong GPU code here.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._cli import Parser
from ._host import Host
from ._testing import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ._sdk import Sdk

SCHEMA = 1
LEVELS = ("error", "warning", "note")


@dataclass(frozen=True)
class Finding:
    """Something to know."""

    level: str
    code: str
    """What kind it is, for programs: ``kfd-permission``."""
    text: str
    next: str = ""
    """The one command that comes next; empty where there is nothing to do."""


def some_of(names: Sequence[str]) -> str:
    """The first three of several names, and how many more there are: ``a, b, c and 7 more``."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def main(argv: Sequence[str], sdk: Sdk) -> int:
    """Print what was found; returns 1 where there is an error among it."""
    parser = Parser(
        prog=f"{sdk.file.command} doctor", description="Report problems with this host.", allow_abbrev=False
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    options = parser.parse_args(list(argv))
    found = examine(sdk, Host())
    number = {level: sum(each.level == level for each in found) for level in LEVELS}
    if options.json:
        report = {
            "schema": SCHEMA,
            "sdk": sdk.file.sdk,
            "version": sdk.file.version,
            "site": str(sdk.site),
            **{f"{level}s": count for level, count in number.items()},
            "findings": [vars(each) for each in found],
        }
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
    else:
        sys.stdout.write(render(sdk, found))
    return int(number["error"] > 0)


def render(sdk: Sdk, found: Sequence[Finding]) -> str:
    """Findings as text: what, and below it the command."""
    labels = {"error": "ERROR  ", "warning": "warning", "note": "note   "}
    lines: list[str] = []
    for each in found:
        lines.append(f"{labels[each.level]}  {each.text}")
        if each.next:
            lines.append(f"         > {each.next}")
    counts = [
        f"{number or 'no'} {level}{'' if number == 1 else 's'}"
        for level in LEVELS[:2]
        for number in [sum(each.level == level for each in found)]
    ]
    return "\n".join([*lines, f"{sdk.file.sdk} {sdk.file.version} in {sdk.site}: {', '.join(counts)}"]) + "\n"


def examine(sdk: Sdk, host: Host) -> list[Finding]:
    """All findings, the worst first; those of one level in the order of the checks."""
    from ._doctor_devel import devel_findings
    from ._doctor_gpu import gpu_findings
    from ._doctor_install import install_findings

    found: list[Finding] = []
    for checks in (install_findings, gpu_findings, devel_findings):
        found += _done(checks(sdk, host))
    return sorted(found, key=lambda each: LEVELS.index(each.level))


def _done(checks: Iterable[Callable[[], Iterable[Finding]]]) -> Iterator[Finding]:
    """What checks find; one that breaks is told, and the others go on."""
    for check in checks:
        for each in _done_one(check):
            yield Finding(each.level, each.code, one_line(each.text, 1000), each.next)


def _done_one(check: Callable[[], Iterable[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:  # noqa: BLE001  # a damaged installation is what this is for
        yield Finding("warning", "unchecked", f"a check failed to run: {type(error).__name__}: {error}")
