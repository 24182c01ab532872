"""Environment variables that change builds: their names, and what each reaches."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from axletree.check.host.variables import Variable
from axletree.core.secrets import looks_secret
from axletree.host.facts.names import host_names
from axletree.host.facts.privacy import HIDDEN, without_credentials

if TYPE_CHECKING:
    from collections.abc import Mapping

_SOURCES = {"name": "the environment", "value": "the environment", "group": "a built-in table of variable names"}
_MOST = 4000


def variable_facts(environ: Mapping[str, str]) -> tuple[Variable, ...]:
    """The variables that change builds, by name."""
    found: list[Variable] = []
    for name, value in sorted(environ.items()):
        group = group_of(name)
        if group is not None:
            shown = HIDDEN if looks_secret(name) and value else without_credentials(value)[:_MOST]
            found.append(Variable(name=name, value=shown, group=group, sources=_SOURCES))
    return tuple(found)


def group_of(name: str) -> str | None:
    """What a variable reaches; ``None`` where it changes no build."""
    groups = host_names().variables.items()
    return next((group for group, patterns in groups if any(fnmatchcase(name, each) for each in patterns)), None)
