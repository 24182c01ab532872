"""A ledger as a table, and what remains to be built."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from axletree.core.units import format_duration, plural, some_lines, some_of
from axletree.plan.ledger import REMAINING
from axletree.view.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.plan.ledger import Former, Standing

_LISTED = 20
_STAGES = 3
_ABOUT = {
    "stale": "built, but the recipe, source or tools have changed since",
    "interrupted": "its build was interrupted; finished stages are in the store",
    "skipped": "skipped on request",
}


def ledger_text(standings: Sequence[Standing], former: Sequence[Former] = (), *, width: int, command: str) -> str:
    """All variants as a table, then counts, and the command that builds what remains.

    Args:
        standings: in the order of the recipe.
        former: entries of variants that it does not have.
        width: columns of the terminal.
        command: what builds the remaining ones.
    """
    rows = [[each.variant, _state(each), _when(each), _took(each), _about(each)] for each in standings]
    table = render_table(["VARIANT", "STATE", "WHEN (UTC)", "TOOK", "ABOUT"], rows, width=width, right=(3,))
    asked = [each for each in standings if each.changes == standings[0].changes]
    counts = Counter(each.state for each in asked)
    said = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    others = len(standings) - len(asked)
    more = f"; {plural(others, 'build')} with other options" if others else ""
    lines = [table, "", f"{plural(len(asked), 'variant')}: {said}{more}"]
    if any(each.state in REMAINING for each in asked):
        lines.append(f"build what remains: {command}")
    if former:
        lines += ["", f"built here, but not variants of this recipe: {plural(len(former), 'entry')}"]
        lines += [f"  {line}" for line in some_lines([_former(each) for each in former], _LISTED)]
    return "\n".join(lines)


def _state(standing: Standing) -> str:
    return f"{standing.state}, with {shlex.join(standing.changes)}" if standing.changes else standing.state


def _former(former: Former) -> str:
    """``py311-cpu (python 3.11, gpu cpu): done``."""
    values = ", ".join(f"{axis} {value}" for axis, value in former.values.items())
    outcome = former.entry.outcome
    return f"{former.variant}{f' ({values})' if values else ''}: {outcome.status if outcome else 'interrupted'}"


def remaining_lines(standings: Sequence[Standing], *, command: str) -> list[str]:
    """What a run of several variants leaves to do; nothing where all are done.

    Args:
        standings: the variants of the run.
        command: what goes on with them.
    """
    left = [each for each in standings if each.state in REMAINING]
    if not left or len(standings) == 1:
        return []
    lines = ["", f"{len(left):,} of {plural(len(standings), 'variant')} remain:"]
    lines += [f"  {line}" for line in some_lines([f"{each.variant}  {_why(each)}" for each in left], _LISTED)]
    return [*lines, f"continue with: {command}"]


def _why(standing: Standing) -> str:
    outcome = standing.entry.outcome
    if standing.state == "failed" and outcome is not None:
        return f"failed: {outcome.cause} ({outcome.log})"
    return standing.state


def _when(standing: Standing) -> str:
    entry = standing.entry
    if standing.state in {"interrupted", "running"} and entry.attempt is not None:
        at: float | None = entry.attempt.at
    else:
        at = entry.outcome.at if entry.outcome is not None else None
    return "" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")


def _took(standing: Standing) -> str:
    outcome = standing.entry.outcome
    known = outcome is not None and standing.state in {"done", "stale", "failed"}
    return format_duration(outcome.took) if known and outcome is not None else ""


def _about(standing: Standing) -> str:
    entry = standing.entry
    outcome, attempt = entry.outcome, entry.attempt
    if standing.state == "failed" and outcome is not None:
        where = f"{outcome.stage}: " if outcome.stage is not None else ""
        return f"{where}{outcome.cause}\n{outcome.log}"
    if standing.state == "running" and attempt is not None:
        return f"process {attempt.run.pid} on {attempt.run.host}"
    if standing.state == "interrupted" and attempt is not None and attempt.built:
        return "all stages are done, but nothing has been published yet"
    if standing.state == "done" and outcome is not None:
        unproved = [f"unproved image: {some_of(outcome.unproved, _STAGES)}"] if outcome.unproved else []
        return "\n".join([*unproved, outcome.log or ""])
    return _ABOUT.get(standing.state, "")
