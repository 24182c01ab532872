"""Manifests of SDKs: those that ship are right, and everything that is wrong with one is told at once with its line."""

from __future__ import annotations

import contextlib
import tomllib
from pathlib import Path

import jsonschema
import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import RecipeError
from axletree.package.sdk.manifest import Manifest, parse_manifest
from axletree.package.sdk.schema import sdk_manifest_schema

SHIPPED = Path(__file__).parents[2] / "recipes" / "sdk"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(SHIPPED.glob("*.toml"))}

SMALL = """\
[sdk]
name = "demo"
module = "demo_sdk"
command = "demo-sdk"
prefix = "DEMO_SDK"

[[package]]
name = "core"
kind = "core"
dist = "demo-core"

[[package.claim]]
"""


def faults(text: str) -> list[tuple[int | None, str | None, str]]:
    with pytest.raises(RecipeError) as caught:
        parse_manifest(text, filename="demo.toml")
    return [(problem.line, problem.key, problem.message) for problem in caught.value.problems]


def fault(more: str, old: str = "", new: str = "") -> tuple[str | None, str]:
    """The one fault of the small manifest with something more, or something else."""
    ((_, key, message),) = faults(SMALL.replace(old, new, 1) + more)
    return key, message


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_manifests_that_ship_are_right(name: str) -> None:
    manifest = parse_manifest(TEXTS[name], filename=name)
    assert manifest.sdk.summary
    assert manifest.sdk.license


def test_the_smallest_manifest_is_enough() -> None:
    manifest = parse_manifest(SMALL, filename="demo.toml")
    assert manifest.package[0].claim[0].files == ("**",)


def test_everything_is_told_at_once_with_its_line() -> None:
    text = """\
[sdk]
name = "demo"
module = "json"
command = "demo sdk"
prefix = "demo_"
version = "one"
license = "Free!"
root-package = "cor"
bin = "/usr/bin"

[[package]]
name = "core"
kind = "core"
dist = "demo-core"
requires = ["libraries", "cores"]
colour = "red"

[[package.claim]]
artifacts = ["core_hip"]
files = ["/lib/**", "lib/x**", "lib/{a,b}.so"]
exclude = ["**"]

[[package]]
name = "libraries"
kind = "libraries"
dist = "demo"
extra = "Libraries"
requires = ["core", "core", "devel"]
family = "demo-libraries"

[[package]]
name = "devel"
kind = "devel"
dist = "demo-devel"

[[package]]
name = "devel"
kind = "devel"
dist = "demo-core"
extra = "device-x"

[[drop]]
why = " "
components = []

[libraries.opens]
"../x" = ["lib/y.so"]

[[command]]
files = ["bin/a", "bin/a"]
expect = "x"
expect-exit = []

[environment]
PATH = "bin"
"A-B" = "lib"
X = ["=1", "lib"]
Y = "../x"

[system]
"*" = "everything"
"lib/libz.so" = ""

[targets]
maker = "nvidia"
table = "amd"
default = "gfx"
groups = { a = ["b", "sm_90"], gfx90a = ["gfx90a"] }

[debs]
prefix = "/usr"
artifacts = { "lib*" = "core_hip", "libfoo" = "core" }
"""
    found = faults(text)
    assert [(line, key) for line, key, _ in found] == [
        (3, "sdk.module"),
        (4, "sdk.command"),
        (5, "sdk.prefix"),
        (6, "sdk.version"),
        (7, "sdk.license"),
        (8, "sdk.root-package"),
        (9, "sdk.bin"),
        (15, "package[0].requires"),
        (15, "package[0].requires[1]"),
        (16, "package[0].colour"),
        (19, "package[0].claim[0].artifacts[0]"),
        (20, "package[0].claim[0].files[0]"),
        (20, "package[0].claim[0].files[1]"),
        (20, "package[0].claim[0].files[2]"),
        (21, "package[0].claim[0].exclude"),
        (23, "package[1]"),
        (26, "package[1].dist"),
        (27, "package[1].extra"),
        (28, "package[1].requires[2]"),
        (29, "package[1].family"),
        (37, "package[3].name"),
        (38, "package[3].kind"),
        (39, "package[3].dist"),
        (40, "package[3].extra"),
        (43, "drop[0].why"),
        (44, "drop[0].components"),
        (47, 'libraries.opens."../x"'),
        (47, 'libraries.opens."../x"[0]'),
        (50, "command[0].files[1]"),
        (51, "command[0].expect"),
        (52, "command[0].expect-exit"),
        (55, "environment.PATH"),
        (56, "environment.A-B"),
        (57, "environment.X"),
        (58, "environment.Y"),
        (61, 'system."*"'),
        (62, 'system."lib/libz.so"'),
        (62, 'system."lib/libz.so"'),
        (66, "targets.table"),
        (67, "targets.default"),
        (68, "targets.groups.a[0]"),
        (68, "targets.groups.gfx90a"),
        (68, "targets.groups.gfx90a"),
        (71, "debs.prefix"),
        (72, 'debs.artifacts."lib*"'),
        (72, "debs.artifacts.libfoo"),
    ]


@pytest.mark.parametrize(
    ("old", "new", "key", "message"),
    [
        (
            'dist = "demo-core"',
            'dist = "demo-sdk"',
            "package[0].dist",
            "module 'demo_sdk' is also the module of the selector",
        ),
        ('dist = "demo-core"', 'dist = "json"', "package[0].dist", "'json' cannot be used as a module name"),
        ('dist = "demo-core"', 'dist = "7zip"', "package[0].dist", "'7zip' cannot be used as a module name"),
        ('dist = "demo-core"', 'dist = "demo--core"', "package[0].dist", "'demo--core' is not a normalized name"),
        (
            'dist = "demo-core"',
            'dist = "demo-core"\nfamily = "x-{family}"',
            "package[0].family",
            "only a package of kind",
        ),
        (
            'dist = "demo-core"',
            'dist = "demo-core"\nextra = "core"',
            "sdk.root-package",
            "'core' is installed only with",
        ),
        (
            'dist = "demo-core"',
            'dist = "demo-core"\nsummary = "a\\nb"',
            "package[0].summary",
            "the text must be a single line",
        ),
        (
            'dist = "demo-core"',
            'dist = "demo-core"\nrequires = ["core"]',
            "package[0].requires[0]",
            "the package requires itself",
        ),
        ("[[package.claim]]", "claim = []", "package[0]", "package 'core' claims no files"),
        ("[[package]]", 'urls = { Home = "ftp://x" }\n[[package]]', "sdk.urls.Home", "'ftp://x' is not a URL"),
    ],
)
def test_names_collide_in_many_ways(old: str, new: str, key: str, message: str) -> None:
    found = fault("", old, new)
    assert found[0] == key
    assert found[1].startswith(message)


@pytest.mark.parametrize(
    "pattern", ["", "/lib", "lib/", "./lib", "lib/../x", "lib//x", "lib\\\\x", "**x", "x**/y", "lib[ab.so", "{a,b}/x"]
)
def test_patterns_that_can_match_nothing_are_faults(pattern: str) -> None:
    assert fault(f'files = ["{pattern}"]')[0] == "package[0].claim[0].files[0]"


def test_a_circle_of_packages_is_told_once_with_its_way() -> None:
    names = ("a", "b", "c")
    text = SMALL + "".join(
        f'[[package]]\nname = "{name}"\nkind = "runtime"\ndist = "demo-{name}"\nrequires = ["{needs}"]\n'
        "[[package.claim]]\n"
        for name, needs in zip(names, ("b", "c", "a"), strict=True)
    )
    ((_, key, message),) = faults(text)
    assert (key, message) == ("package[1].requires", "packages require each other in a cycle: a -> b -> c -> a")


def test_a_circle_of_groups_is_told() -> None:
    text = SMALL + '[targets]\ngroups = { a = ["b"], b = ["a", "gfx90a"] }'
    assert [message for _, _, message in faults(text)] == ["the family is a member of itself"] * 2


def test_names_of_packages_for_gpus_must_differ() -> None:
    package = """
[[package]]
name = "libraries"
kind = "libraries"
dist = "demo-libraries"
extra = "libraries"
family = "{}"
device = "{}"
[[package.claim]]
"""
    more = package.replace("{}", "demo-{family}", 1).replace("{}", "demo-{target}", 1)
    assert fault(more) == ("package[1].device", "another package already uses the name 'demo-{target}'")
    more = package.replace("{}", "demo-{family}-{family}", 1).replace("{}", "d-{target}", 1)
    assert fault(more)[0] == "package[1].family"
    parse_manifest(SMALL + package.replace("{}", "l-{family}", 1).replace("{}", "d-{target}", 1), filename="demo.toml")


def test_what_only_follows_from_another_fault_is_not_said() -> None:
    text = SMALL.replace('kind = "core"', 'kind = "devil"')
    assert [key for _, key, _ in faults(text)] == ["package[0].kind"]


values = st.recursive(
    st.text(max_size=8) | st.integers(-5, 300) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(Manifest.__struct_fields__), values)
def test_no_value_of_a_table_breaks_the_reader(table: str, value: object) -> None:
    text = tomli_w.dumps({table: value}) + ("" if table in {"sdk", "package"} else f"\n{SMALL}")
    with contextlib.suppress(RecipeError):  # any other exception fails
        parse_manifest(text, filename="demo.toml")


def test_the_schema_takes_what_ships_and_refuses_an_unknown_key() -> None:
    check = jsonschema.Draft202012Validator(sdk_manifest_schema())
    for text in TEXTS.values():
        check.validate(tomllib.loads(text))
    with pytest.raises(jsonschema.ValidationError):
        check.validate(tomllib.loads(SMALL + '[devel]\ncolour = "red"'))


def test_every_key_has_a_description() -> None:
    definitions = sdk_manifest_schema()["$defs"]
    bare = [
        f"{name}.{key}"
        for name, table in definitions.items()
        for key, value in table["properties"].items()
        if not value.get("description")
    ]
    assert not bare


@pytest.mark.parametrize(
    ("lines", "key", "message"),
    [
        (
            'cmake-targets = ["a::b"]',
            "sdk.cmake-targets",
            "the key describes how to test a CMake package, but no CMake package is set",
        ),
        (
            'cmake-program = "int main() {}"',
            "sdk.cmake-program",
            "the key describes how to test a CMake package, but no CMake package is set",
        ),
        (
            'cmake-compiler = "bin/cc"',
            "sdk.cmake-compiler",
            "the key describes how to test a CMake package, but no CMake package is set",
        ),
        ('cmake-package = "a)"', "sdk.cmake-package", "'a)' is not a valid CMake package name"),
        (
            'cmake-package = "a"\ncmake-targets = ["a::b", "$<c>"]',
            "sdk.cmake-targets[1]",
            "'$<c>' is not a valid CMake target",
        ),
        (
            'cmake-package = "a"\ncmake-compiler = "/usr/bin/cc"',
            "sdk.cmake-compiler",
            "'/usr/bin/cc' is not a valid path in the SDK",
        ),
    ],
)
def test_how_self_tests_build_a_program(lines: str, key: str, message: str) -> None:
    assert fault("", "[[package]]", f"{lines}\n\n[[package]]") == (key, message)
