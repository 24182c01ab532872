"""Placeholders are strict, say what they read, and leave shell text alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from axletree.core.errors import RecipeError
from axletree.recipe.placeholders import render, scan

VALUES = {"python": "3.13t", "gpu": "cu130", "torch": "2.13.0", "name": "small", "version": "1.0"}


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{torch}", "2.13.0"),
        ("{torch.major}.{torch.minor}", "2.2.13"),
        ("{python.nodot} {python.minor} {python.major}", "313t 3.13 3"),
        ("{name}-{version}-{version.minor}-{gpu.nodot}", "small-1.0-1.0-cu130"),
        ("{{torch}} {{{torch}}}", "{torch} {2.13.0}"),
        ("$HOME $AXLETREE_OUT/${LIB} $(ls) $$ $", "$HOME $AXLETREE_OUT/${LIB} $(ls) $$ $"),
        ("${A:-${B:-{x}}}/{gpu}", "${A:-${B:-{x}}}/cu130"),
        ("awk '{{print $1}}'", "awk '{print $1}'"),
        ("${torch}", "${torch}"),
        ("a\nb {gpu}\n", "a\nb cu130\n"),
    ],
)
def test_render(text: str, rendered: str) -> None:
    assert render(text, VALUES, allowed=("python", "gpu", "torch")) == rendered


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{torch}", "{torch} uses axis 'torch', which is not declared here"),
        ("{trch}", "{trch} uses axis 'trch'"),
        ("{blas}", "{blas} uses 'blas', which has no value"),
        ("{gpu.minor}", "{gpu.minor} requires gpu to be a version, but it is 'cu130'"),
        ("{name.major}", "requires name to be a version, but it is 'small'"),
        ("{gpu.patch}", "uses property 'patch', which gpu 'cu130' does not have"),
        ("{ gpu }", "is not a placeholder"),
        ("{gpu!r}", "is not a placeholder"),
        ("{gpu:>3}", "is not a placeholder"),
        ("{}", "is not a placeholder"),
        ("{gpu", "is not closed"),
        ("gpu}", "single '}'"),
        ("${gpu", "'${' is not closed"),
    ],
)
def test_errors_say_which(text: str, message: str) -> None:
    with pytest.raises(RecipeError) as caught:
        render(text, VALUES, allowed=("gpu", "blas"))
    assert message in str(caught.value)


def test_properties_of_a_value() -> None:
    properties = {"gpu": {"arch-list": "7.5;8.0+PTX", "note": "{gpu} ${A}"}, "torch": {"minor": "never read"}}
    text = render("{gpu.arch-list}/{gpu}/{torch.minor}", VALUES, allowed=("gpu", "torch"), properties=properties)
    assert text == "7.5;8.0+PTX/cu130/2.13"
    assert render("{gpu.note}", VALUES, allowed=("gpu",), properties=properties) == "{gpu} ${A}", "copied as it is"


def test_all_errors_of_a_text_at_once() -> None:
    with pytest.raises(RecipeError) as caught:
        render("{torch} {a b} } {python}", VALUES, allowed=())
    assert len(caught.value.problems) == 4


@given(st.text())
def test_doubled_braces_give_any_text(text: str) -> None:
    escaped = text.replace("{", "{{").replace("}", "}}").replace("$", "_")
    assert render(escaped, {}, allowed=()) == text.replace("$", "_")


@given(st.lists(st.sampled_from(["$", "{{", "}}", "{a.b}", "${a", "{", "}", "a", "b \n"]), max_size=12).map("".join))
def test_any_text_is_scanned_whole_or_has_a_fault(text: str) -> None:
    template = scan(text)
    written = "".join(2 * str(piece) if piece in ("{", "}") else str(piece) for piece in template.pieces)
    assert template.faults or written == text


def label(template: str, torch: str) -> str:
    return render(template, {"torch": torch}, allowed=["torch"])


def test_local_labels_are_ordered_as_the_versions_that_they_name() -> None:
    template = "torch.{torch.minor}.cpu"
    releases = ["1.13.1", "2.1.0", "2.2.0", "2.9.1", "2.10.0", "2.13.0", "2.20.0", "3.0.0"]
    labels = [label(template, release) for release in releases]
    assert [Version(f"1+{each}").local for each in labels] == labels, "read back as written"
    versions = [Version(f"1+{each}") for each in labels]
    assert versions == sorted(versions)
    assert len(set(versions)) == len(versions), "torch.2.10 is not torch.2.1"


def test_why_labels_keep_their_dots() -> None:
    assert Version("1+torch29") > Version("1+torch213"), "compared as string"
    assert Version("1+torch.2.9") < Version("1+torch.2.13"), "compared as numbers"
