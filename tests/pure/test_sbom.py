"""What a bill of materials says, and that it says nothing that no evidence states."""

import json

import pytest

from axletree.package.sbom.write import (
    Component,
    debian_purl,
    render_sbom,
    required_components,
    vendored_components,
    wheel_purl,
)
from axletree.package.wheel.metadata import create_metadata

SUBJECT = Component(name="demo", version="1.0+cpu", origin="bundled", purl=wheel_purl("Demo", "1.0+cpu"))


@pytest.mark.parametrize(
    ("path", "name", "version"),
    [
        ("third_party/fmt/LICENSE", "fmt", ""),
        ("third_party/miniz-3.0.2/LICENSE", "miniz", "3.0.2"),
        ("third_party/fbgemm/external/cutlass/python/LICENSE.txt", "cutlass", ""),
        ("third_party/flash-attention/flash_attn/cute/LICENSE", "flash-attention", ""),
        ("third_party/aiter/3rdparty/composable_kernel/LICENSE", "composable_kernel", ""),
    ],
)
def test_vendored_sources_are_named_by_their_folder(path: str, name: str, version: str) -> None:
    (component,) = vendored_components([f"demo-1.0.dist-info/licenses/{path}"], dist_info="demo-1.0.dist-info")
    assert (component.name, component.version, component.origin) == (name, version, "vendored")
    assert component.paths == (f"demo-1.0.dist-info/licenses/{path}",)


def test_the_projects_own_licence_is_no_component() -> None:
    paths = ["demo-1.0.dist-info/licenses/LICENSE", "demo-1.0.dist-info/licenses/third_party/NOTICE", "demo/x/LICENSE"]
    assert vendored_components(paths, dist_info="demo-1.0.dist-info") == ()


def test_a_requirement_has_a_version_only_where_it_is_pinned() -> None:
    metadata = create_metadata(
        name="demo", version="1", requires=["Nvidia_NCCL-cu13==2.30.7", "numpy>=1.26", "torch==2.*", "a==1,!=2"]
    )
    found = {component.name: component.version for component in required_components(metadata)}
    assert found == {"nvidia-nccl-cu13": "2.30.7", "numpy": "", "torch": "", "a": ""}


def test_a_document_is_the_same_for_the_same_evidence_and_names_each_part() -> None:
    library = Component(
        name="libgomp.so.1",
        version="12.2.0-14",
        origin="bundled",
        purl=debian_purl("libgomp1", "12.2.0-14", "amd64"),
        sha256="0" * 64,
        paths=("demo.libs/libgomp-00000000.so.1",),
    )
    first = render_sbom(SUBJECT, [library], epoch=0)
    assert first == render_sbom(SUBJECT, [library], epoch=0)
    document = json.loads(first)
    assert document["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/demo@1.0%2Bcpu"
    (part,) = document["components"]
    assert part["hashes"] == [{"alg": "SHA-256", "content": "0" * 64}]
    assert part["evidence"]["occurrences"] == [{"location": "demo.libs/libgomp-00000000.so.1"}]
    assert document["dependencies"] == [{"ref": "wheel", "dependsOn": [part["bom-ref"]]}]
    other = json.loads(render_sbom(SUBJECT, [], epoch=0))
    assert other["serialNumber"] != document["serialNumber"]


def test_cyclonedx_takes_the_document_as_valid() -> None:
    validation = pytest.importorskip("cyclonedx.validation.json", reason="cyclonedx-python-lib is not installed")
    schema = pytest.importorskip("cyclonedx.schema")
    components = [Component(name="fmt", origin="vendored", paths=("a/b",)), Component(name="x", origin="required")]
    text = render_sbom(SUBJECT, components, epoch=1_700_000_000).decode()
    assert validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(text) is None
