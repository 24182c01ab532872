"""Why a stage would run again: its ingredients now, held against those of its last result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from axletree.core.units import some_lines, some_of

if TYPE_CHECKING:
    from collections.abc import Iterator

_WORDS = {
    "action": "the action",
    "axes": "axis",
    "parameters": "parameter",
    "inputs": "input",
    "tools": "tool",
    "environ": "variable",
    "host": "host fact",
    "epoch": "SOURCE_DATE_EPOCH",
}
_NAMED = {"parameter bundled.libraries": "libraries of this machine were added, removed or updated"}
"""Parameters that are digests of something with a name of its own."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LIMIT = 8
_ITEMS = 4
_WIDTH = 60


def why(now: dict[str, Any], last: dict[str, Any] | None, *, present: bool = True) -> tuple[str, ...]:
    """Reasons in people's words, most telling first; at most a handful.

    Args:
        now: Ingredients of the stage as planned.
        last: Ingredients of its last result, ``None`` if it never ran.
        present: Whether that result is still whole in the store.
    """
    if last is None:
        return ("it has not run yet",)
    reasons = [reason for part in _WORDS for reason in _part_reasons(part, now.get(part), last.get(part))]
    if not reasons:
        return () if present else ("its result is no longer in the store",)
    return tuple(some_lines(reasons, _LIMIT))


def _part_reasons(part: str, now: Any, last: Any) -> list[str]:
    if now == last:
        return []
    word = _WORDS[part]
    now, last = _alike(now, last)
    if isinstance(now, dict) and isinstance(last, dict):
        if part == "action" and now["name"] == last["name"]:
            return list(_code_reasons(now, last))
        return [_reason(word, path, old, new) for path, old, new in _differences(now, last)]
    return [_reason(word, "", last, now)]


def _alike(now: Any, last: Any) -> tuple[Any, Any]:
    """What is empty is left out of ingredients: a table or a list that is on one side only has an empty one beside."""
    for kind in (dict, list):
        if now is None and isinstance(last, kind):
            return kind(), last
        if last is None and isinstance(now, kind):
            return now, kind()
    return now, last


def _code_reasons(now: dict[str, Any], last: dict[str, Any]) -> Iterator[str]:
    new, old = now["revision"], last["revision"]
    if new != old:
        order = "newer" if new > old else "older"
        yield f"the code of action {now['name']!r} is {order}: revision {old} -> {new}"
    if now.get("distribution") != last.get("distribution"):
        change = f"{_short(last.get('distribution'))} -> {_short(now.get('distribution'))}"
        yield f"a different distribution provides the action {now['name']!r}: {change}"


def _differences(now: dict[str, Any], last: dict[str, Any], prefix: str = "") -> list[tuple[str, Any, Any]]:
    found: list[tuple[str, Any, Any]] = []
    for name in dict.fromkeys([*now, *last]):
        new, old = now.get(name), last.get(name)
        if new == old:
            continue
        new, old = _alike(new, old)
        if isinstance(new, dict) and isinstance(old, dict):
            found.extend(_differences(new, old, f"{prefix}{name}."))
        else:
            found.append((f"{prefix}{name}", old, new))
    return found


def _reason(word: str, path: str, old: Any, new: Any) -> str:
    subject = f"{word} {path}".strip()
    if _is_digest(old) and _is_digest(new):
        return _NAMED.get(subject, f"{subject} changed")
    if word == "input":
        return f"{subject} changed" if old is not None and new is not None else f"{subject} was added or removed"
    if isinstance(old, list) and isinstance(new, list):
        return f"{subject}: {_list_change(old, new)}"
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        return f"{subject}: {_list_change(old.splitlines(), new.splitlines())}"
    return f"{subject}: {_short(old)} -> {_short(new)}"


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _list_change(old: list[Any], new: list[Any]) -> str:
    added = [_short(item) for item in new if item not in old]
    removed = [_short(item) for item in old if item not in new]
    both = [item for item in added if item in removed]  # a file of the same name with other content
    parts = [f"the content of {item} changed" for item in both]
    parts += [f"+ {item}" for item in added if item not in both]
    parts += [f"- {item}" for item in removed if item not in both]
    if not parts:
        return "the order or the number of items changed"
    return some_of(parts, _ITEMS)


def _short(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, dict):
        value = next((value[name] for name in ("file", "path", "filename", "name") if value.get(name)), value)
    text = str(value).strip()
    return text if len(text) <= _WIDTH else f"{text[:28]}...{text[-28:]}"
