"""Which GPUs a wheel promises, and what the rules about GPU code say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.check.engine import apply_rules
from axletree.check.gpu import promised_gpus
from axletree.check.rules.wheel.gpu import GPU_RULES
from axletree.check.rules.wheel.gpu_sample import gpu_library, gpu_sample
from axletree.check.rules.wheel.sample import sample

if TYPE_CHECKING:
    from axletree.check.dist import DistFacts


def labelled(label: str, variant: bytes = b"") -> DistFacts:
    """A wheel with a variant label and a ``variant.json``."""
    facts = sample()
    name = msgspec.structs.replace(facts.wheel.name, variant=label)
    return sample(wheel={"name": name, "texts": {"demo-1.0.dist-info/variant.json": variant}})


@pytest.mark.parametrize(
    ("label", "gpus"),
    [
        ("cu130_sm90", ["90"]),
        ("cu130_sm_80_sm120", ["80", "120"]),
        ("rocm_gfx90a_gfx1100", ["gfx90a", "gfx1100"]),
        ("gfx942", ["gfx942"]),
        ("null", []),
        ("00fa39b2", []),
        ("x86_64_v3", []),
        ("", []),
    ],
)
def test_the_label_promises(label: str, gpus: list[str]) -> None:
    assert [gpu.name for gpu in promised_gpus(labelled(label))] == gpus


@pytest.mark.parametrize(
    ("document", "gpus"),
    [
        (b'{"variants": {"x": {"nvidia": {"sm_arch": ["90_real", "100_virtual"]}}}}', ["90", "100"]),
        (b'{"variants": {"x": {"amd": {"gfx_arch": ["gfx90a"]}}}}', ["gfx90a"]),
        (b'{"variants": {"x": {"nvidia": {"cuda_version_lower_bound": ["13.0"]}}}}', []),
        (b'{"variants": {"x": {"x86_64": {"level": ["v3"]}, "aarch64": {"arch": ["8.2"]}}}}', []),
        (b'{"variants": []}', []),
        (b'{"variants": {"x": {"nvidia": {"sm_arch": [7, null]}}}}', []),
        (b"{", []),
        (b"7", []),
    ],
)
def test_variant_json_promises(document: bytes, gpus: list[str]) -> None:
    assert [gpu.name for gpu in promised_gpus(labelled("some", document))] == gpus


def test_a_missing_architecture_names_its_libraries_and_what_there_is() -> None:
    facts = gpu_sample(gpu_library("sm_80"), gpu_library("sm_80", "sm_86"), archs=("9.0",))
    (found,) = [finding for finding in apply_rules(GPU_RULES, facts) if finding.severity == "error"]
    assert found.rule == "dist/gpu-arch-missing"
    assert "and 1 other have no code that runs on sm_90" in found.message
    assert "the code is for sm_80, sm_86" in found.message
    assert len(found.evidence) == 2


def test_each_maker_is_held_to_its_own_promise() -> None:
    facts = gpu_sample(gpu_library("sm_90"), gpu_library("gfx90a"), archs=("90", "gfx90a"))
    assert not [finding for finding in apply_rules(GPU_RULES, facts) if finding.severity == "error"]
