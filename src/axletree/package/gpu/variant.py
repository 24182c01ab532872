"""Wheel variants: labels, properties and the two JSON files that describe them.

PEP 825 (a draft) names the file in ``.dist-info`` and the one beside the wheels of an index. What is written is its
predecessor, schema v0.2.0 as ``variantlib`` 0.2.2 writes it: uv 0.13.9 takes a variant only where the file says, under
``providers``, which plugin knows its properties. :func:`_document` is the one place that follows the schema.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.core.errors import IntegrityError, Problem
from axletree.package.wheel.names import VARIANT_LABEL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

VARIANT_FILE = "variant.json"
"""Name of the file in ``.dist-info``."""

_SCHEMA = "https://variants-schema.wheelnext.dev/v0.2.0.json"
_NAME, _VALUE = re.compile(r"[a-z0-9_]+"), re.compile(r"[a-z0-9_.]+")


class Property(msgspec.Struct, frozen=True, order=True):
    """``namespace :: feature :: value``."""

    namespace: str
    feature: str
    value: str

    def __str__(self) -> str:
        """As tools print it."""
        return f"{self.namespace} :: {self.feature} :: {self.value}"


class WheelVariant(msgspec.Struct, frozen=True, kw_only=True):
    """A variant of a wheel."""

    label: str
    """Last part of the file name."""
    properties: tuple[Property, ...]
    """Sorted. A machine must match at least one value of each feature."""


class VariantProvider(msgspec.Struct, frozen=True, kw_only=True):
    """The plugin that tells which values of a namespace a machine has."""

    requires: tuple[str, ...] = ()
    plugin_api: str | None = None
    rest: dict[str, msgspec.Raw] = {}
    """Keys that are not known here; kept as they are."""


class VariantSet(msgspec.Struct, frozen=True, kw_only=True):
    """What a variant file says: one variant in a wheel, all of a release on an index."""

    variants: tuple[WheelVariant, ...]
    namespaces: tuple[str, ...]
    """By falling priority."""
    providers: dict[str, VariantProvider]


PROVIDERS = {
    "nvidia": VariantProvider(
        requires=("nvidia-variant-provider>=0.0.1,<1.0.0",),
        plugin_api="nvidia_variant_provider.plugin:NvidiaVariantPlugin",
    ),
    "amd": VariantProvider(
        requires=("amd-variant-provider>=0.0.1,<1.0.0",), plugin_api="amd_variant_provider.plugin:AMDVariantPlugin"
    ),
}
"""The plugins of the two GPU makers. uv has NVIDIA's built in and takes it in place of the named one."""


def make_variant(label: str, properties: Iterable[Property]) -> WheelVariant:
    """A variant, checked.

    Raises:
        IntegrityError: a name or value that PEP 825 does not allow, or no properties, or the reserved label.
    """
    ordered = tuple(sorted(set(properties)))
    problems = [
        Problem(
            message=f"{str(part)!r} is not a valid variant property",
            hint="use a-z, 0-9 and _; values may also contain dots",
        )
        for part in ordered
        if not (_NAME.fullmatch(part.namespace) and _NAME.fullmatch(part.feature) and _VALUE.fullmatch(part.value))
    ]
    if not VARIANT_LABEL.fullmatch(label) or label == "null":
        problems.append(Problem(message=f"{label!r} is not a valid variant label", hint="use a-z, 0-9, _ and dots"))
    if not ordered:
        problems.append(Problem(key=label, message="a variant must have at least one property"))
    if problems:
        raise IntegrityError(*problems)
    return WheelVariant(label=label, properties=ordered)


def describe(variant: WheelVariant) -> VariantSet:
    """One variant with the providers of its namespaces."""
    namespaces = tuple(dict.fromkeys(part.namespace for part in variant.properties))
    known = {name: PROVIDERS[name] for name in namespaces if name in PROVIDERS}
    return VariantSet(variants=(variant,), namespaces=namespaces, providers=known)


def render_variants(described: VariantSet) -> bytes:
    """The bytes of ``variant.json`` or of ``NAME-VERSION-variants.json``."""
    return msgspec.json.format(msgspec.json.encode(_document(described), order="sorted"), indent=4) + b"\n"


def _document(described: VariantSet) -> dict[str, object]:
    providers: dict[str, dict[str, object]] = {}
    for name, provider in described.providers.items():
        fields: dict[str, object] = dict(provider.rest)
        if provider.requires:
            fields["requires"] = provider.requires
        if provider.plugin_api is not None:
            fields["plugin-api"] = provider.plugin_api
        providers[name] = fields
    variants: dict[str, dict[str, dict[str, list[str]]]] = {}
    for variant in described.variants:
        features = variants.setdefault(variant.label, {})
        for part in variant.properties:
            features.setdefault(part.namespace, {}).setdefault(part.feature, []).append(part.value)
    return {
        "$schema": _SCHEMA,
        "default-priorities": {"namespace": described.namespaces},
        "providers": providers,
        "variants": variants,
    }


class _Priorities(msgspec.Struct):
    namespace: tuple[str, ...] = ()


class _File(msgspec.Struct, rename="kebab"):
    default_priorities: _Priorities = msgspec.field(default_factory=_Priorities)
    providers: dict[str, dict[str, msgspec.Raw]] = {}
    variants: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {}


def parse_variants(data: bytes, *, file: str = VARIANT_FILE) -> VariantSet:
    """Read either file, of this schema or the draft's.

    Raises:
        IntegrityError: no JSON of that form, or labels and properties that are not allowed.
    """
    try:
        read = msgspec.json.decode(data, type=_File)
        providers = {name: _provider(fields) for name, fields in read.providers.items()}
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise IntegrityError(
            Problem(file=file, message=f"the file is not a valid variant description: {error}")
        ) from error
    variants = []
    for label, namespaces in read.variants.items():
        properties = [
            Property(namespace, feature, value)
            for namespace, features in namespaces.items()
            for feature, values in features.items()
            for value in values
        ]
        if properties or label != "null":
            variants.append(make_variant(label, properties))
    return VariantSet(variants=tuple(variants), namespaces=read.default_priorities.namespace, providers=providers)


def _provider(fields: dict[str, msgspec.Raw]) -> VariantProvider:
    rest = {key: value for key, value in fields.items() if key not in {"requires", "plugin-api"}}
    requires = msgspec.json.decode(fields["requires"], type=tuple[str, ...]) if "requires" in fields else ()
    plugin = msgspec.json.decode(fields["plugin-api"], type=str) if "plugin-api" in fields else None
    return VariantProvider(requires=requires, plugin_api=plugin, rest=rest)


def merge_variants(sets: Sequence[tuple[str, VariantSet]]) -> VariantSet:
    """The file of an index: what several wheels (file name, its description) of one release say together.

    Raises:
        IntegrityError: two of them contradict each other. Names both files.
    """
    variants: dict[str, tuple[str, WheelVariant]] = {}
    providers: dict[str, tuple[str, VariantProvider]] = {}
    namespaces: tuple[str, ...] = ()
    problems: list[Problem] = []
    for file, described in sets:
        for variant in described.variants:
            first, known = variants.setdefault(variant.label, (file, variant))
            if known != variant:
                message = f"the wheel defines label {variant.label!r} with different properties than {first}"
                problems.append(Problem(file=file, message=message))
        for name, provider in described.providers.items():
            first, knows = providers.setdefault(name, (file, provider))
            if knows != provider:
                problems.append(
                    Problem(file=file, message=f"the wheel names a different provider for {name!r} than {first} does")
                )
        shorter, longer = sorted((namespaces, described.namespaces), key=len)
        if longer[: len(shorter)] != shorter:
            order = ", ".join(described.namespaces)
            problems.append(
                Problem(file=file, message=f"other wheels list these namespaces in a different order: {order}")
            )
        namespaces = longer
    if problems:
        raise IntegrityError(
            *problems,
            hint=(
                "build all wheels of the release with the same variant settings, because they share one variant "
                "file in the index"
            ),
        )
    return VariantSet(
        variants=tuple(variant for _, (_, variant) in sorted(variants.items())),
        namespaces=namespaces,
        providers={name: provider for name, (_, provider) in providers.items()},
    )
