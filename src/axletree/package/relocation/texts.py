"""Texts of a tree that know where other files lie, replaced or refused: an edit that finds nothing is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from axletree.recipe.relocation import TextEdit

_HINT = (
    "the file has changed since the edit was written: adapt `find` and `replace` to the new text, or remove the edit"
)
_EXCERPT = 120


def edit_texts(texts: Mapping[str, str], edits: Sequence[TextEdit]) -> dict[str, str]:
    """Path -> new text, for files that edits change.

    Args:
        texts: path -> text, at least of the files that the edits name, as far as they are there.
        edits: applied in order.

    Raises:
        IntegrityError: a file is missing, or its text is not there as often as it should be. Names all.
    """
    new: dict[str, str] = {}
    problems: list[Problem] = []
    for number, edit in enumerate(edits):
        key = f"edits[{number}]"
        text = new.get(edit.file, texts.get(edit.file))
        if text is None:
            problems.append(Problem(file=edit.file, key=key, message="the file to edit does not exist", hint=_HINT))
            continue
        count = text.count(edit.find)
        if count != edit.count:
            message = f"the text to replace occurs {'once' if count == 1 else f'{count} times'}, expected {edit.count}"
            excerpt = edit.find.strip()[:_EXCERPT]
            problems.append(Problem(file=edit.file, key=key, message=message, excerpt=excerpt, hint=_HINT))
        new[edit.file] = text.replace(edit.find, edit.replace)
    if problems:
        raise IntegrityError(*problems)
    return new
