"""Change the names that a loader reads: search path, SONAME, needed libraries, interpreter. Written elsewhere.

In place where it fits: unused room in the string table, unused entries of the dynamic section. Else the tables go into
one new segment at the end of the file, with room to spare, so that later changes fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from axletree.binary.edits import EditedSource, Put, ordered_edits
from axletree.binary.elf.annex import extend_last, plan_annex
from axletree.binary.elf.layout import (
    DT_NEEDED,
    DT_RPATH,
    DT_RUNPATH,
    DT_SONAME,
    DT_STRSZ,
    MAX_STRING,
    PT_INTERP,
    Image,
    interpreter_place,
    read_image,
    version_names,
)
from axletree.binary.elf.strings import names_strings, place_strings, private_strings, read_strings
from axletree.core.errors import IntegrityError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from axletree.binary.edits import Edit
    from axletree.binary.source import Source

SLACK = 256
"""Bytes that a string table gets to spare when it moves."""
_MAX_PATH = 4096
"""Bytes of an interpreter's name that Linux reads, with the final zero byte (``PATH_MAX``)."""
_DF_1_PIE, _DT_FLAGS_1 = 0x08000000, 0x6FFFFFFB


class ElfChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to change in a file. Nothing by default."""

    rpath: tuple[str, ...] | None = None
    """Entries of the search path, in place of DT_RPATH and DT_RUNPATH; ``()`` removes both, ``None`` leaves them."""
    kind: Literal["rpath", "runpath"] = "rpath"
    """The tag of that search path. DT_RPATH also serves the libraries that the file needs, DT_RUNPATH only itself."""
    soname: str | None = None
    """The new SONAME."""
    replace_needed: dict[str, str] = msgspec.field(default_factory=dict)
    """Needed library -> its new name, also in the symbol versions (else the loader stops with an assertion)."""
    add_needed: tuple[str, ...] = ()
    """Libraries to need as well, loaded after the others."""
    remove_needed: tuple[str, ...] = ()
    """Libraries not to need any longer."""
    interpreter: str | None = None
    """The new loader of a program (PT_INTERP)."""


def plan_edit(source: Source, change: ElfChange, *, name: str = "ELF file") -> tuple[Edit, ...]:
    """The edits that make a change; none where the file is already as asked.

    Raises:
        IntegrityError: the file is damaged or has no room, what should be replaced is not there, or a symbol version
            still names a library to be removed.
    """
    _check_change(change, name)
    image = read_image(source, name=name)
    wanted = _wanted_entries(image, change)
    renamed = _renamed_versions(image, change)
    _check_found(image, change)
    interpreter = _new_interpreter(image, change)
    if not renamed and not interpreter and wanted == list(image.dynamic):
        return ()
    if all(program.type != PT_INTERP for program in image.programs) and (image.first(_DT_FLAGS_1) or 0) & _DF_1_PIE:
        problem = "the program is statically linked, so the loader never searches for libraries"
        raise IntegrityError(Problem(file=name, message=problem))
    return _plan(image, wanted, renamed, interpreter)


def edited(source: Source, change: ElfChange, *, name: str = "ELF file") -> EditedSource:
    """A file as it is once changed.

    Raises:
        IntegrityError: as :func:`plan_edit`.
    """
    return EditedSource(source, plan_edit(source, change, name=name))


def _new_interpreter(image: Image, change: ElfChange) -> bytes:
    """The name of the loader, if it changes."""
    if change.interpreter is None:
        return b""
    start, size = interpreter_place(image)
    new = change.interpreter.encode()
    return b"" if image.reader.take(start, size, "interpreter").partition(b"\0")[0] == new else new


def _plan(
    image: Image, wanted: Sequence[tuple[int, int | bytes]], renamed: dict[int, bytes], interpreter: bytes
) -> tuple[Edit, ...]:
    place, table = read_strings(image)
    private = private_strings(image, place, len(table))
    names = list(version_names(image))
    in_use = {value for tag, value in wanted if isinstance(value, int) and names_strings(tag)}
    in_use.update(each.offset for each in names if each.field not in renamed)
    texts = [*(value for _, value in wanted if isinstance(value, bytes)), *renamed.values()]
    dead = [value for tag, value in image.dynamic if names_strings(tag) and value < len(table)]
    dead += [each.offset for each in names if each.field in renamed]
    dead = [offset for offset in dead if offset not in in_use]
    strings = place_strings(image, table, texts, dead=dead, kept=tuple(in_use), private=private)
    entries = [(tag, strings.offsets[value] if isinstance(value, bytes) else value) for tag, value in wanted]
    grown = len(strings.table) > len(table)
    new = strings.table + bytes(SLACK)
    edits: list[Edit] = []
    dynamic_at, slots, moved = image.dynamic_at, image.dynamic_slots, False
    start, room = interpreter_place(image) if interpreter else (0, 0)
    fits = len(entries) < slots and (not interpreter or len(interpreter) < room)
    longer = extend_last(image, place, table, new) if grown and fits else None
    if (grown and longer is None) or not fits:
        tables = (place, table, new)
        annex = plan_annex(image, table=tables, strings=grown, entries=entries, clear=private, interpreter=interpreter)
        moved = annex.strings
        edits += annex.edits
        dynamic_at, slots, entries = annex.dynamic_at, annex.slots, list(annex.dynamic)
    elif interpreter:
        edits.append(Put(start, interpreter.ljust(room, b"\0")))
    if longer is not None:
        edits += longer
        moved = True
        entries = [(tag, len(new) if tag == DT_STRSZ else value) for tag, value in entries]
    if not moved:
        edits += [Put(place + start, new[start:end]) for start, end in strings.changed]
    edits.append(Put(dynamic_at, image.pack_dynamic(entries, slots)))
    word = image.reader.structure("I")
    edits += [Put(field, word.pack(strings.offsets[text])) for field, text in renamed.items()]
    return ordered_edits(edits)


def _wanted_entries(image: Image, change: ElfChange) -> list[tuple[int, int | bytes]]:
    """The dynamic section as asked; new strings stand as bytes."""
    path = ":".join(change.rpath or ()).encode()
    path_tag = DT_RPATH if change.kind == "rpath" else DT_RUNPATH
    replacements = set(change.replace_needed.values())
    path_left, names = bool(path), set[bytes]()
    entries: list[tuple[int, int | bytes]] = []
    for tag, value in image.dynamic:
        new_tag, new = tag, image.string(value) if tag in {DT_NEEDED, DT_SONAME, DT_RPATH, DT_RUNPATH} else b""
        old = new
        if tag == DT_NEEDED:
            new = _encoded(change.replace_needed.get(_text(old))) or old
            if _text(old) in change.remove_needed or (new in names and _text(new) in replacements):
                continue
            names.add(new)
        elif tag == DT_SONAME:
            new = _encoded(change.soname) or old
        elif tag in {DT_RPATH, DT_RUNPATH} and change.rpath is not None:
            if not path_left:
                continue
            new_tag, new, path_left = path_tag, path, False
        entries.append((new_tag, value if new == old else new))
    added = [(DT_NEEDED, text) for text in dict.fromkeys(map(str.encode, change.add_needed)) if text not in names]
    if change.soname is not None and all(tag != DT_SONAME for tag, _ in entries):
        added.append((DT_SONAME, change.soname.encode()))
    if path_left:
        added.append((path_tag, path))
    after = 1 + max((index for index, (tag, _) in enumerate(entries) if tag == DT_NEEDED), default=-1)
    return [*entries[:after], *added, *entries[after:]]


def _renamed_versions(image: Image, change: ElfChange) -> dict[int, bytes]:
    """Place of a file name in the needed versions -> the new name."""
    renamed: dict[int, bytes] = {}
    if not change.replace_needed and not change.remove_needed:
        return renamed
    for each in version_names(image):
        if each.kind != "file":
            continue
        text = _text(image.string(each.offset))
        if text in change.remove_needed:
            raise IntegrityError(
                Problem(
                    file=image.name,
                    message=f"the file needs symbol versions from {text}, so this library cannot be removed",
                    hint="replace the library instead of removing it, or relink the file without the library",
                )
            )
        if change.replace_needed.get(text, text) != text:
            renamed[each.field] = change.replace_needed[text].encode()
    return renamed


def _check_found(image: Image, change: ElfChange) -> None:
    needed = {_text(image.string(value)) for tag, value in image.dynamic if tag == DT_NEEDED}
    if any(each not in needed for each in change.replace_needed):
        needed |= {_text(image.string(each.offset)) for each in version_names(image) if each.kind == "file"}
    wanted = [*change.replace_needed, *change.remove_needed]
    missing = [
        Problem(file=image.name, message=f"the file has no NEEDED entry for {each}")
        for each in wanted
        if each not in needed
    ]
    if missing:
        raise IntegrityError(*missing)


def _check_change(change: ElfChange, name: str) -> None:
    problems = [Problem(file=name, message=message) for message in _faults(change)]
    if problems:
        raise IntegrityError(*problems)


def _faults(change: ElfChange) -> Iterator[str]:
    soname = () if change.soname is None else (change.soname,)
    for text in (*soname, *change.replace_needed.values(), *change.add_needed):
        if not text or "\0" in text or len(text) > MAX_STRING // 4:
            yield f"{text[:80]!r} is not a valid library name"
    for text in change.rpath or ():
        if not text or "\0" in text or ":" in text:
            yield f"{text[:80]!r} is not a valid search path entry"
    loader = change.interpreter
    if loader is not None and (not loader.startswith("/") or "\0" in loader or len(loader) >= _MAX_PATH):
        yield f"{loader[:80]!r} is not a valid interpreter (expected an absolute path)"
    if len(":".join(change.rpath or ())) > MAX_STRING // 4:
        yield f"the search path is longer than {MAX_STRING // 4} characters"


def _text(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
