"""The end of a run in a few lines: what ran, what failed and why, what came out, what to type next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from axletree.check.rules.image_proof import UNPROVED
from axletree.core.units import format_bytes, format_duration, plural, some_lines
from axletree.view.findings import Style, finding_lines, group_findings, indented, plain
from axletree.view.plain import failure_lines, outcome_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.view.state import RunView, StageView

MAX_LISTED = 10
"""Wheels, findings and unreached stages that are listed before the rest is only counted."""

_KEPT = {
    "nothing": "starts from scratch",
    "compiler-cache": "starts from scratch, with its compiled files in the compiler cache",
    "folder": "continues in its existing build folder",
}
"""What becomes of a stage that was stopped, by what it keeps."""
_KINDS = {".whl": "wheel", ".conda": "conda package", ".zip": "archive"}
_COMMANDS = 4
"""Command lines that install something, at most."""
LACKING = {
    "network": "could access the network",
    "processes": "shared the process table with the rest of the machine",
    "mounts": "could write to shared environments",
    "paths": "compiled at paths that only this store has",
}
"""What the lack of each kind of isolation means for a stage."""


def summary_lines(
    view: RunView,
    *,
    out: str,
    install: Sequence[str] = (),
    report: str | None = None,
    style: Style = plain,
) -> list[str]:
    """What a run says at its end.

    Args:
        view: The state after the run's last event.
        out: Output folder as the user gave it.
        install: Command lines that install the result.
        report: Path of the HTML report, if one was written.
        style: Colours severities.
    """
    if _is_noop(view):
        return [
            (
                f"nothing to do: {plural(len(view.stages), 'stage')} {_are(len(view.stages))} in the store, "
                f"and {out} is up to date ({format_duration(view.wall)})"
            ),
            *_unproved(view, style),
        ]
    lines = [_totals(view)]
    for stage in view.having("failed"):
        lines += ["", f"{stage.stage} {outcome_text(stage)}", *failure_lines(stage, "  ", style)]
        if stage.log is not None:
            lines.append(f"  inspect it: axletree shell {shlex.quote(f'{view.recipe}:{stage.stage}')}")
    lines += _not_reached(view)
    lines += _published(view, out)
    lines += _findings(view, style)
    lines += _isolation(view)
    if view.status == "cancelled":
        lines += ["", "finished stages are kept; run the same command to continue from here", *_kept(view)]
    if report is not None:
        lines += ["", f"report: {report}"]
    if view.status == "done" and install:
        lines += [f"install with: {command}" for command in install[:_COMMANDS]]
        if len(install) > _COMMANDS:
            lines.append(f"  and {len(install) - _COMMANDS} more, for other variants: see the report")
    return lines


def _kept(view: RunView) -> list[str]:
    """What is kept of the stages that were at work."""
    stages = [stage for stage in view.having("cancelled", "running") if stage.started is not None]
    return _listed([f"{stage.stage}: {_KEPT[stage.keeps]}{_steps(stage)}" for stage in stages])


def _listed(lines: Sequence[str]) -> list[str]:
    return [f"  {line}" for line in some_lines(lines, MAX_LISTED)]


def _steps(stage: StageView) -> str:
    counted = stage.keeps == "folder" and stage.done is not None and stage.total is not None
    return f", with {stage.done:,} of {stage.total:,} steps done" if counted else ""


def _is_noop(view: RunView) -> bool:
    return (
        view.status == "done"
        and all(stage.status == "cached" for stage in view.stages.values())
        and not any(file.fresh for file in view.published)
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _totals(view: RunView) -> str:
    counts = (
        (len(view.having("failed")), "failed"),
        (len(view.having("done")), "ran"),
        (len(view.having("cached")), "from the store"),
        (len(view.having("blocked")), "not reached"),
        (len(view.having("cancelled", "running", "waiting")), "not finished"),
    )
    said = [f"{count:,} {word}" for count, word in counts if count]
    said[:1] = [f"{plural(count, 'stage')} {word}" for count, word in counts if count][:1]
    verb = "in" if view.status == "done" else "after"
    return f"{view.status} {verb} {format_duration(view.wall)}: {', '.join(said) or 'no stage'}"


def _not_reached(view: RunView) -> list[str]:
    stages = [stage.stage for stage in view.having("blocked")]
    if not stages:
        return []
    return ["", "not reached:", *_listed(stages)]


def _published(view: RunView, out: str) -> list[str]:
    if not view.published:
        return []
    counts = [(name, sum(file.path.endswith(end) for file in view.published)) for end, name in _KINDS.items()]
    packages = [file for file in view.published if file.path.endswith(tuple(_KINDS))]
    counts.append(("other file", len(view.published) - len(packages)))
    lines = ["", f"in {out}: {', '.join(plural(count, name) for name, count in counts if count)}"]
    # New ones first: they are what this run is about.
    ordered = sorted(packages, key=lambda file: not file.fresh)
    lines += _listed(
        [f"{file.path}  {format_bytes(file.size)}{'' if file.fresh else '  (unchanged)'}" for file in ordered]
    )
    return lines


def _findings(view: RunView, style: Style) -> list[str]:
    # The errors of a failed stage stand with it already; what the recipe accepts is said whatever it is.
    found = group_findings(view.stages.values())
    groups = [group for group in found if group.finding.severity == "warning" or group.finding.waived]
    lines: list[str] = []
    for group in groups[:MAX_LISTED]:
        lines += indented(finding_lines(group.finding, style, brief=True))
        lines += [f"        and {plural(len(group.places) - 1, 'more place')}"] if len(group.places) > 1 else []
    if len(groups) > MAX_LISTED:
        lines.append(f"  ... {len(groups) - MAX_LISTED:,} more")
    return ["", *lines] if lines else []


def _unproved(view: RunView, style: Style) -> list[str]:
    """Results in the store that may be of another image: said whenever they are used."""
    found = [group.finding for group in group_findings(view.stages.values()) if group.finding.rule == UNPROVED]
    return [line for finding in found for line in indented(finding_lines(finding, style, brief=True))]


def _isolation(view: RunView) -> list[str]:
    """What this system could not keep stages from, each said once."""
    counts = {name: sum(name in stage.lacks for stage in view.stages.values()) for name in LACKING}
    lines = [
        f"  warning: {plural(count, 'stage')} {LACKING[name]}: better isolation is not available here"
        for name, count in counts.items()
        if count
    ]
    return ["", *lines] if lines else []
