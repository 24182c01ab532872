"""Bills of materials are read in the forms that PEP 770 names, and nothing else passes as one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.package.sbom.read import Sbom, read_bundled, read_sbom
from axletree.package.sbom.write import Component, render_sbom

_KEYS = ["name", "value", "version", "components", "properties", "evidence", "occurrences", "location", "hashes"]


def test_cyclonedx_with_components_in_components() -> None:
    inner = {"name": "zlib", "version": "1.3"}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "components": [{"name": "libpng", "components": [inner]}, {"no": "name"}, 7],
    }
    found = read_sbom(json.dumps(document).encode(), file="x")
    assert found == Sbom(format="CycloneDX 1.6", components=(("libpng", ""), ("zlib", "1.3")))


def test_spdx_2() -> None:
    document = {"spdxVersion": "SPDX-2.3", "packages": [{"name": "zlib", "versionInfo": "1.3"}]}
    found = read_sbom(b"\xef\xbb\xbf" + json.dumps(document).encode(), file="x")
    assert found == Sbom(format="SPDX-2.3", components=(("zlib", "1.3"),))


def test_spdx_3() -> None:
    graph = [{"type": "software_Package", "name": "zlib", "software_packageVersion": "1.3"}, {"type": "Person"}]
    document = {"@context": "https://spdx.org/rdf/3.0.1/spdx-context.jsonld", "@graph": graph}
    assert read_sbom(json.dumps(document).encode(), file="x").components == (("zlib", "1.3"),)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<?xml version="1.0"?>\n<bom xmlns="http://cyclonedx.org/schema/bom/1.6"/>', "CycloneDX (XML)"),
        ('<?xml version="1.0"?><rdf:RDF xmlns:spdx="x"/>', "SPDX (RDF)"),
        ("# a comment\nSPDXVersion: SPDX-2.3\n", "SPDX (tag-value)"),
        ('spdxVersion: "SPDX-2.3"\n', "SPDX (YAML)"),
    ],
)
def test_other_forms_are_recognised(text: str, name: str) -> None:
    assert read_sbom(text.encode(), file="x") == Sbom(format=name)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"7", b"{}", b'{"name": "x"}', b"\xff\xfe", b"<html></html>"])
def test_what_is_none_is_said(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="not a bill of materials"):
        read_sbom(data, file="sboms/x.json")


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["name", "components", "version"]), inner),
    )
)
def test_any_components(components: object) -> None:
    data = json.dumps({"bomFormat": "CycloneDX", "components": components}).encode()
    assert read_sbom(data, file="x").format == "CycloneDX"


_TEXT = st.text(max_size=20)
_BUNDLED = st.builds(
    Component,
    name=st.text(min_size=1, max_size=20),
    version=_TEXT,
    origin=st.just("bundled"),
    purl=_TEXT,
    sha256=_TEXT,
    paths=st.lists(_TEXT, max_size=3).map(tuple),
    note=_TEXT,
)


@given(st.lists(_BUNDLED, max_size=4))
def test_libraries_taken_in_are_read_as_they_were_written(parts: list[Component]) -> None:
    others = [Component(name="fmt", origin="vendored", paths=("a/b",)), Component(name="numpy", origin="required")]
    document = render_sbom(Component(name="demo", origin="bundled"), [*parts, *others], epoch=0)
    assert read_bundled(document, file="x") == tuple(parts)
    assert len(read_sbom(document, file="x").components) == len(parts) + 2


@given(
    st.recursive(
        st.none() | st.integers() | _TEXT | st.just("axletree:origin") | st.just("bundled"),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(_KEYS), inner),
    )
)
def test_bills_of_other_tools_name_nothing_that_was_taken_in_here(components: object) -> None:
    """Whatever has the shape of ours is one of ours."""
    for part in read_bundled(json.dumps({"components": components}).encode(), file="x"):
        assert part.name
        assert part.origin == "bundled"


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_bill_of_ours_that_was_cut_off_is_said(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="not a bill of materials"):
        read_bundled(data, file="grafts.cdx.json")


def test_depth_is_bounded() -> None:
    data = b'{"bomFormat":"CycloneDX","components":[' + b'{"name":"a","components":[' * 400 + b"]}" * 400 + b"]}"
    assert len(read_sbom(data, file="x").components) <= 30
    with pytest.raises(IntegrityError):
        read_sbom(b'{"a":' * 100_000, file="x")
