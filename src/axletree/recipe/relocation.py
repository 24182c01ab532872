"""The table ``relocate`` of a stage: how a tree of the build machine becomes one that loads on a clean host.

Its paths and patterns may hold placeholders; what edits find and put may not, as code is full of braces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from axletree.recipe.base import Table

if TYPE_CHECKING:
    from axletree.recipe.filling import Filler


class TextEdit(Table, frozen=True, kw_only=True):
    """A text replacement in a file, such as a path that has changed."""

    file: Annotated[str, Meta(description="Path in the input tree.")]
    find: Annotated[str, Meta(description="Text to replace.")]
    replace: Annotated[str, Meta(description="Replacement text.")]
    count: Annotated[
        int, Meta(ge=1, description="Number of times that the text must occur; otherwise the stage fails.")
    ] = 1


class Relocate(Table, frozen=True, kw_only=True):
    """What `action = "relocate"` does with the tree of its first input.

    All fields are in the stage's key, whatever they say. New ones go to :class:`RelocateTable`, and to the parameters of
    the action, where a default is in no key.
    """

    place: Annotated[
        dict[str, str],
        Meta(
            description='Folder -> its new path, such as `{ "torch/lib" = "libtorch/lib" }`; the longest match wins. `.` is the tree itself.'
        ),
    ] = {}
    drop: Annotated[tuple[str, ...], Meta(description="File patterns for what to leave out.")] = ()
    single: Annotated[
        tuple[str, ...],
        Meta(
            description="File patterns for shared libraries that exist under several versioned names: each library is kept once, and libraries that need it are changed to use the name that is kept."
        ),
    ] = ()
    names: Annotated[
        Literal["plain", "soname"],
        Meta(
            description="Name that `single` keeps. `plain`: libx.so, which also becomes the SONAME; `soname`: the existing SONAME."
        ),
    ] = "plain"
    graft: Annotated[
        tuple[str, ...],
        Meta(
            description="SONAME patterns of libraries to copy from this machine, such as `libfmt.so*`. Their contents are part of the stage's key. If a needed library is neither listed nor found elsewhere, the stage fails."
        ),
    ] = ()
    graft_to: Annotated[str | None, Meta(description="Folder in the new tree for the copied libraries.")] = None
    graft_from: Annotated[
        tuple[str, ...],
        Meta(description="Absolute paths of folders to search for these libraries before the loader's own folders."),
    ] = ()
    elsewhere: Annotated[
        dict[str, tuple[str, ...]],
        Meta(
            description='Folder -> SONAME patterns of libraries that other packages put there, such as `{ "lib" = ["libmkl_*.so*"] }`: they are not copied, and search paths include the folder.'
        ),
    ] = {}
    opens: Annotated[
        dict[str, tuple[str, ...]],
        Meta(
            description="Path, SONAME or file name of a file -> libraries that the file opens by name at run time; the folders of these libraries are added to its search path."
        ),
    ] = {}
    edits: Annotated[tuple[TextEdit, ...], Meta(description="Text replacements, applied in order.")] = ()
    cmake: Annotated[
        bool, Meta(description="Whether to adapt the names, paths and linked libraries of exported CMake targets.")
    ] = False
    private: Annotated[
        tuple[str, ...],
        Meta(
            description="Patterns for CMake targets, libraries and absolute folders on the build machine that exported targets refer to but their users do not need, such as `protobuf::libprotobuf`. Grafted libraries need not be listed."
        ),
    ] = ()


class RelocateTable(Relocate, frozen=True, kw_only=True):
    """What `action = "relocate"` does with the tree of its first input."""

    link: Annotated[
        dict[str, str],
        Meta(
            description='Folder of the new tree or of a sibling tree -> folder that gets a symbolic link to each of its entries, such as `{ "lib" = "lib/python{python}/site-packages/torch/lib" }`. Files that the second folder has already are kept.'
        ),
    ] = {}
    drop_needed: Annotated[
        dict[str, tuple[str, ...]],
        Meta(
            description='File pattern -> SONAME patterns of libraries that these files list as needed but use no symbols of, such as `{ "torch/lib/libtorch_*.so" = ["libcuda.so.1"] }`: the entries are removed. If a file uses a symbol of a library, or if that is not known, the stage fails.'
        ),
    ] = {}

    @property
    def rules(self) -> Relocate:
        """What is in every key."""
        return Relocate(**{name: getattr(self, name) for name in Relocate.__struct_fields__})


def filled_rules(table: RelocateTable, text: Filler) -> RelocateTable:
    """A table at a variant.

    Raises:
        RecipeError: a text reads what its stage does not declare.
    """
    return replace(
        table,
        place=text.table(table.place),
        link=text.table(table.link),
        drop=text.each(table.drop),
        single=text.each(table.single),
        graft_to=None if table.graft_to is None else text.one(table.graft_to),
        graft_from=text.each(table.graft_from),
    )
