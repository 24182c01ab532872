"""What changes in the files of a wheel that is split: texts that know where others lie, search paths of ELF files."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from axletree.binary.elf.edit import edited
from axletree.binary.elf.facts import is_elf, read_elf
from axletree.binary.elf.verify import verify_edit
from axletree.binary.source import BufferSource
from axletree.core.errors import IntegrityError, Problem
from axletree.core.globs import glob_matcher
from axletree.package.libraries.linkage import installed_path
from axletree.package.libraries.relocate import opened_names, plan_search_paths
from axletree.package.split.check import insert_check

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from axletree.binary.elf.facts import ElfFacts
    from axletree.package.split.assign import Destination
    from axletree.package.split.report import Change
    from axletree.package.split.rules import SplitEdit, SplitRules
    from axletree.package.split.source import SplitSource

_HINT = (
    "the file has changed since these rules were written: adapt `find` and `replace` to the new text, "
    "or remove the edit"
)


class Changed(NamedTuple):
    """New content of a file."""

    data: bytes
    kind: Change
    before: ElfFacts | None = None
    """Facts of an ELF file as it was."""


def change_files(source: SplitSource, rules: SplitRules, kept: Sequence[Destination]) -> dict[str, Changed]:
    """Path -> new content, for the files of all packages that edits and relocation change.

    Raises:
        IntegrityError: a file is missing, no text, or not as an edit expects it. Names all of them.
    """
    texts: dict[str, str] = {}
    owners = {place.path: place.package for place in kept}
    problems = [
        problem
        for number, edit in enumerate(rules.edit)
        if edit.when is None or any(map(glob_matcher((edit.when,)), source.entries))
        for problem in _edit(source, number, edit, texts, owners)
    ]
    if rules.check is not None and owners.get(rules.check.file) != rules.name:
        message = f"the import check must go into this file, but it is not in {rules.name}"
        problems.append(Problem(key=rules.check.file, message=message))
    if problems:
        raise IntegrityError(*problems)
    texts_changed = {path: Changed(text.encode(), "edited") for path, text in texts.items()}
    return texts_changed | dict(_relocated(source, rules, kept))


def with_check(source: SplitSource, changes: dict[str, Changed], file: str, check: str) -> dict[str, Changed]:
    """The changes, and the check at import at the head of a file.

    Raises:
        IntegrityError: the file is no Python text.
    """
    text = changes[file].data.decode() if file in changes else _text(source, file)
    return changes | {file: Changed(insert_check(text, check, file=file).encode(), "edited")}


def _edit(
    source: SplitSource, number: int, edit: SplitEdit, texts: dict[str, str], owners: dict[str, str | None]
) -> Iterator[Problem]:
    """Apply one edit to the texts read so far."""
    key = f"edit[{number}]"
    if edit.file not in owners:
        yield Problem(file=edit.file, key=key, message="the file to edit does not exist", hint=_HINT)
        return
    if edit.file not in texts:
        texts[edit.file] = _text(source, edit.file)
    count = texts[edit.file].count(edit.find)
    if count != edit.count:
        message = f"the text to replace occurs {'once' if count == 1 else f'{count} times'}, expected {edit.count}"
        yield Problem(file=edit.file, key=key, message=message, excerpt=edit.find.strip()[:120], hint=_HINT)
    texts[edit.file] = texts[edit.file].replace(edit.find, edit.replace)


def _text(source: SplitSource, path: str) -> str:
    try:
        return source.read(path).decode()
    except UnicodeDecodeError as error:
        raise IntegrityError(Problem(file=path, message=f"the file is not UTF-8 text: {error.reason}")) from error


def _relocated(source: SplitSource, rules: SplitRules, kept: Sequence[Destination]) -> Iterator[tuple[str, Changed]]:
    """The files that rules relocate, and that have to change for it."""
    libraries = {place for each in kept if ".so" in each.target and (place := installed_path(each.target)) is not None}
    for each in kept:
        if rules.rule[each.rule].relocate and (found := _relocate(source, rules, each, libraries)) is not None:
            yield each.path, found


def _relocate(source: SplitSource, rules: SplitRules, file: Destination, libraries: Collection[str]) -> Changed | None:
    """A file whose search path leads to what it needs and opens, where its own does not.

    What is there stays, in its order and of its kind, and comes first. Nothing is added for libraries of others: the
    original's own entries lead there.
    """
    content = BufferSource(source.read(file.path))
    place = installed_path(file.target)
    if place is None or not is_elf(content.read(0, 4)):
        return None
    facts = read_elf(content, name=file.target)
    opens = {place: tuple(opened_names(file.path, facts, rules.opens))}
    planned = plan_search_paths({place: facts}, unread=libraries, dlopens=opens, kind=None).plans
    for plan in planned:  # none for a static program
        if plan.added and plan.change is not None:
            result = edited(content, plan.change, name=file.target)
            verify_edit(content, result, plan.change, name=file.target)
            return Changed(result.read(0, result.size), "relocated", facts)
    return None
