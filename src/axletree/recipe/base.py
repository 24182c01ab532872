"""What the tables of a recipe, and of the files beside it, are made of: names, conditions, combinations."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

# `expects` says what a pattern means, for error messages.
AxisName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9_]*$",
        extra={"expects": "an axis name: lowercase letters, digits and '_', starting with a letter"},
    ),
]
Name = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$",
        extra={"expects": "a name: lowercase letters, digits, '.', '_' and '-', with a letter or digit at both ends"},
    ),
]
PropertyName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z][a-z0-9-]*$",
        extra={
            "expects": (
                "a property name: lowercase letters, digits and '-', starting with a letter; quote an axis value that "
                "contains a dot"
            )
        },
    ),
]
Sha256 = Annotated[
    str, Meta(pattern=r"^[0-9a-f]{64}$", extra={"expects": "a SHA-256 digest: 64 characters from 0-9 and a-f"})
]
CMakeVariable = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_./+-]+(:(BOOL|STRING|PATH|FILEPATH))?$",
        extra={"expects": "the name of a CMake variable, followed by a colon and its type if it needs one"},
    ),
]
Condition = dict[AxisName, str | tuple[str, ...]]
"""Axis -> the value or values that match."""
Properties = dict[AxisName, dict[str, dict[PropertyName, str]]]
"""Axis -> its value -> property -> text."""


FORMAT_OF: dict[str, Literal["wheel", "conda"]] = {"pip": "wheel", "uv": "wheel", "conda": "conda"}
"""Client that tests install with -> the format of packages that it takes."""


class Table(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", forbid_unknown_fields=True):
    """A table of a file that people write, or read: unknown keys are errors, underscores are written as dashes."""


class Matrix(Table, frozen=True, kw_only=True):
    """How axis values combine: in all combinations, except for zipped axes and excluded combinations."""

    zip: Annotated[
        tuple[tuple[AxisName, ...], ...], Meta(description="Groups of axes that advance together, value by value.")
    ] = ()
    exclude: Annotated[tuple[Condition, ...], Meta(description="Combinations to leave out.")] = ()
