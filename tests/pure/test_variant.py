"""Variants of wheels: labels in names, properties, and the files that describe them."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError, UsageError
from axletree.package.gpu.arch import parse_gpu
from axletree.package.gpu.gpu_variant import cuda_floor, gpu_variant
from axletree.package.gpu.variant import (
    Property,
    describe,
    make_variant,
    merge_variants,
    parse_variants,
    render_variants,
)
from axletree.package.wheel.names import parse_wheel_name, render_wheel_name

SM90 = (Property("nvidia", "sm_arch", "90_real"), Property("nvidia", "cuda_version_lower_bound", "13.0"))


@pytest.mark.parametrize(
    ("name", "build", "variant"),
    [
        ("demo-1.0-py3-none-any.whl", "", ""),
        ("demo-1.0-1-py3-none-any.whl", "1", ""),
        ("demo-1.0-py3-none-any-null.whl", "", "null"),
        ("demo-1.0-cp311-cp311-manylinux_2_28_x86_64-cu130_sm90.whl", "", "cu130_sm90"),
        ("demo-1.0-2b-cp311-abi3-linux_x86_64-00fa4c1e.whl", "2b", "00fa4c1e"),
    ],
)
def test_labels_in_file_names(name: str, build: str, variant: str) -> None:
    parsed = parse_wheel_name(name)
    assert (parsed.build, parsed.variant) == (build, variant)
    assert render_wheel_name(parsed) == name


@pytest.mark.parametrize(
    "name",
    ["demo-1.0-py3-none-any-CU130.whl", "demo-1.0-1-py3-none-any-a-b.whl", "demo-1.0-b1-py3-none-any.whl", "a-b.whl"],
)
def test_what_is_no_label(name: str) -> None:
    with pytest.raises(IntegrityError):
        parse_wheel_name(name)


def test_a_description_reads_back() -> None:
    described = describe(make_variant("cu130_sm90", SM90))
    data = render_variants(described)
    assert parse_variants(data) == described
    assert json.loads(data)["$schema"].endswith("v0.2.0.json")
    assert json.loads(data)["variants"]["cu130_sm90"]["nvidia"]["sm_arch"] == ["90_real"]


def test_wheels_of_a_release_come_together() -> None:
    one = describe(make_variant("sm90", SM90[:1]))
    two = describe(make_variant("sm80", [Property("nvidia", "sm_arch", "80_real")]))
    merged = merge_variants([("b.whl", one), ("a.whl", two), ("b.whl", one)])
    assert [variant.label for variant in merged.variants] == ["sm80", "sm90"]
    assert merged.namespaces == ("nvidia",)
    other = describe(make_variant("sm90", SM90))
    with pytest.raises(
        IntegrityError, match=r"c\.whl: the wheel defines label 'sm90' with different properties than b\.whl"
    ):
        merge_variants([("b.whl", one), ("c.whl", other)])
    amd = describe(make_variant("amd", [Property("amd", "gfx_arch", "gfx90a")]))
    with pytest.raises(IntegrityError, match="other wheels list these namespaces in a different order: amd"):
        merge_variants([("b.whl", one), ("c.whl", amd)])


def test_keys_of_other_tools_are_kept() -> None:
    data = json.loads(render_variants(describe(make_variant("x", [Property("tpu", "kind", "v5")]))))
    data["providers"]["tpu"] = {"requires": ["tpu-provider"], "optional": True}
    again = json.loads(render_variants(parse_variants(json.dumps(data).encode())))
    assert again["providers"]["tpu"] == {"requires": ["tpu-provider"], "optional": True}


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"variants": 1}', '{"variants": {"A B": {}}}', '{"providers": {"x": {"requires": 1}}}']
)
def test_damaged_descriptions(text: str) -> None:
    with pytest.raises(IntegrityError):
        parse_variants(text.encode())


@given(data=st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(IntegrityError):
        parse_variants(data)


def test_labels_and_properties_are_checked() -> None:
    for label, value in (("null", "1"), ("SM", "1"), ("a-b", "1"), ("ok", "a:b")):
        with pytest.raises(IntegrityError):
            make_variant(label, [Property("nvidia", "sm_arch", value)])
    with pytest.raises(IntegrityError, match="must have at least one property"):
        make_variant("ok", [])


def test_variants_for_gpus() -> None:
    both = gpu_variant([parse_gpu("80"), parse_gpu("90")], cuda="13.0")
    assert both.label == "cu130_sm80_90"
    assert [str(part) for part in both.properties] == [
        "nvidia :: cuda_version_lower_bound :: 13.0",
        "nvidia :: sm_arch :: 80_real",
        "nvidia :: sm_arch :: 90_real",
    ]
    narrower = gpu_variant([parse_gpu("90")], cuda=None, base=both)
    assert (narrower.label, len(narrower.properties)) == ("cu130_sm90", 2)
    amd = gpu_variant([parse_gpu("gfx90a:sramecc+:xnack-")], cuda=None)
    assert (amd.label, str(amd.properties[0])) == ("gfx90a_sramecc_no_xnack", "amd :: gfx_arch :: gfx90a")
    with pytest.raises(UsageError, match="both NVIDIA and AMD"):
        gpu_variant([parse_gpu("90"), parse_gpu("gfx90a")], cuda="13.0")
    with pytest.raises(UsageError, match="which CUDA version it was built with"):
        gpu_variant([parse_gpu("90")], cuda=None)


@pytest.mark.parametrize(
    ("version", "requires", "needed", "floor"),
    [
        ("1.0+cu128", ["nvidia-cuda-runtime==13.0.96"], [], "12.0"),
        ("1.0+cu92", [], [], "9.0"),
        ("1.0+torch.2.13.cpu", ["numpy", "not a requirement!"], [], None),
        ("1.0", ["cuda-toolkit[cudart,nvrtc]==13.0.3; sys_platform == 'linux'"], ["libcudart.so.12"], "13.0"),
        ("1.0", ["nvidia-cuda-runtime-cu12==12.8.90"], [], "12.0"),
        ("1.0", [], ["libc.so.6", "libcudart.so.12", "libcublas.so.12"], "12.0"),
        ("1.0", ["nvidia-cuda-runtime>=12"], ["libcudart.so.11.0"], None),
    ],
)
def test_the_lowest_cuda(version: str, requires: list[str], needed: list[str], floor: str | None) -> None:
    assert cuda_floor(version=version, requires=requires, needed=needed) == floor
