"""Activation and its undoing as functions of variables; :mod:`axletree.environment.shells` says the same to shells.

An activation remembers, in exported variables of its level, what each variable was (``AXLETREE_1_WAS_PATH``), how
(``AXLETREE_1_HOW``: ``x`` exported, ``p`` a plain variable of the shell, ``u`` unset, then what parts its entries
where it is a list) and what it made of it (``AXLETREE_1_NOW_PATH``). So any process below can undo it, whatever shell
began it; what the user changed meanwhile is told apart from what we set, and stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from axletree.core.grouping import grouped
from axletree.environment.delta import NAME, entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from axletree.environment.delta import Activation, Delta

ACTIVE = "AXLETREE_ACTIVE"
"""How many activations lie over one another."""
ENV = "AXLETREE_ENV"
"""Folder of the environment that is active. It is set as every other variable, so it is restored like them."""
_MARKS = {"": "", "l": ":", "w": " "}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to a variable."""

    variable: str
    value: str | None
    """``None`` if it is unset."""
    exported: bool = True


def level_of(environ: Mapping[str, str]) -> int:
    """How many activations are in effect."""
    text = environ.get(ACTIVE, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 5 else 0


def combined(delta: Delta, before: str | None) -> str | None:
    """The value of a variable after a change. An empty list gains no empty entry: that would be the current folder."""
    match delta.operation:
        case "set":
            return delta.value
        case "unset":
            return None
        case "prepend":
            return f"{delta.value}{delta.separator}{before}" if before else delta.value
        case "append":
            return f"{before}{delta.separator}{delta.value}" if before else delta.value


def by_variable(activation: Activation) -> dict[str, tuple[Delta, ...]]:
    """The changes of each variable, in order."""
    found = grouped((delta.variable, delta) for delta in activation.deltas)
    return {name: tuple(deltas) for name, deltas in found.items()}


def activated(environ: Mapping[str, str], activation: Activation) -> dict[str, str]:
    """The variables with an environment active; the same where it is the active one already."""
    level = level_of(environ)
    if level and environ.get(ENV) == activation.folder:
        return dict(environ)
    result = dict(environ)
    prefix = f"AXLETREE_{level + 1}"
    hows: list[str] = []
    changes = {ENV: None, **by_variable(activation)}
    for name, deltas in changes.items():
        before = environ.get(name)
        hows.append(f"{name}:{'u' if before is None else 'x'}{list_mark(deltas or ())}")
        value = activation.folder if deltas is None else _folded(deltas, before)
        _put(result, name, value)
        _put(result, f"{prefix}_WAS_{name}", before)
        _put(result, f"{prefix}_NOW_{name}", value)
    result[f"{prefix}_HOW"] = " ".join(hows)
    result[ACTIVE] = str(level + 1)
    return result


def list_mark(deltas: Iterable[Delta]) -> str:
    """What says in ``HOW`` that a variable is a list: ``l`` with colons, ``w`` with spaces; empty where it is none."""
    ways = {delta.separator if delta.operation in {"prepend", "append"} else "" for delta in deltas}
    return {frozenset({":"}): "l", frozenset({" "}): "w"}.get(frozenset(ways), "")


def _folded(deltas: Iterable[Delta], before: str | None) -> str | None:
    value = before
    for delta in deltas:
        value = combined(delta, value)
    return value


def _put(variables: dict[str, str], name: str, value: str | None) -> None:
    if value is None:
        variables.pop(name, None)
    else:
        variables[name] = value


def undoing(environ: Mapping[str, str]) -> tuple[Change, ...]:
    """What undoes the last activation; nothing where none is in effect.

    A variable that still is as the activation left it gets back exactly what it was. One that was changed since keeps
    the change, without what the activation added.
    """
    level = level_of(environ)
    if not level:
        return ()
    prefix = f"AXLETREE_{level}"
    changes = []
    for name, how, separator in _hows(environ.get(f"{prefix}_HOW", "")):
        was = None if how == "u" else environ.get(f"{prefix}_WAS_{name}", "")
        now, value = environ.get(f"{prefix}_NOW_{name}"), environ.get(name)
        if value == now:
            changes.append(Change(variable=name, value=was, exported=how != "p"))
        elif value is not None and now is not None and separator:
            changes.append(Change(variable=name, value=without(value, now, was, separator), exported=how != "p"))
    ours = sorted(name for name in environ if name.startswith(f"{prefix}_") and NAME.fullmatch(name))
    changes += [Change(variable=name, value=None) for name in ours]
    changes.append(Change(variable=ACTIVE, value=str(level - 1) if level > 1 else None))
    return tuple(changes)


def _hows(text: str) -> Iterator[tuple[str, str, str]]:
    """(variable, how it was, what parts its entries)."""
    for word in text.split():
        name, _, how = word.partition(":")
        if NAME.fullmatch(name) and how[:1] in {"x", "p", "u"} and how[1:] in _MARKS:
            yield name, how[0], _MARKS[how[1:]]


def without(value: str, now: str, was: str | None, separator: str) -> str | None:
    """A list that the user changed after the activation, without the entries that the activation brought.

    Args:
        value: what the variable is.
        now: what the activation made of it.
        was: what it was before; ``None``: unset.
        separator: what parts the entries.
    """
    added = list(entries(now, separator))
    for entry in entries(was or "", separator):
        if entry in added:
            added.reverse()  # ours stand in front: the user's are the last ones
            added.remove(entry)
            added.reverse()
    kept = value.split(separator)
    for entry in added:
        if entry in kept:
            kept.remove(entry)
    if not any(kept) and was is None:
        return None
    return separator.join(kept)


def deactivated(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables without the last activation."""
    result = dict(environ)
    for change in undoing(environ):
        _put(result, change.variable, change.value)
    return result
