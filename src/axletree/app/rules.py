"""Every rule that there is, whatever it looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from axletree.check.rules.archive import ARCHIVE_RULES
from axletree.check.rules.build import BUILD_RULES
from axletree.check.rules.conda import CONDA_RULES
from axletree.check.rules.environment import ENVIRONMENT_RULES
from axletree.check.rules.host.all import HOST_RULES
from axletree.check.rules.wheel.all import DIST_RULES
from axletree.core.errors import Problem, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from axletree.check.engine import Rule

RULES: tuple[tuple[str, Sequence[Rule[Any]]], ...] = (
    ("What `axletree doctor` says of hosts", HOST_RULES),
    ("What `axletree env verify` says of environments", ENVIRONMENT_RULES),
    ("What a build says before it compiles", BUILD_RULES),
    ("What the audit says of archives that it refuses", ARCHIVE_RULES),
    ("What the audit says of wheels", DIST_RULES),
    ("What the audit says of conda packages", CONDA_RULES),
)
"""Title -> rules, by what they look at."""


def find_rules(patterns: Sequence[str]) -> tuple[tuple[str, tuple[Rule[Any], ...]], ...]:
    """Rules by their ids, ``cuda/error-804``, or by what they are about, ``cuda``; all where nothing is named.

    Raises:
        UsageError: a name fits no rule.
    """
    known = [rule.id for _, rules in RULES for rule in rules]
    unknown = [name for name in patterns if not any(_fits(rule, name) for rule in known)]
    if unknown:
        import difflib  # noqa: PLC0415 (only on this error path: start-up time)

        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(Problem(message=f"no rule called {unknown[0]}", hint=f"{hint}`axletree rules` lists them"))
    chosen = (
        (title, tuple(rule for rule in rules if not patterns or any(_fits(rule.id, name) for name in patterns)))
        for title, rules in RULES
    )
    return tuple((title, rules) for title, rules in chosen if rules)


def _fits(rule: str, name: str) -> bool:
    return name in (rule, rule.partition("/")[0])
