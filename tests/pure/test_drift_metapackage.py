"""Parts that a metapackage's extras bring: what its wheel says of them takes the place of a guess."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from axletree.core.errors import UsageError
from axletree.package.drift.metapackage import fan_out, requires_extras
from axletree.package.drift.requirements import RequirementOrigin, of_requirement
from axletree.package.wheel.metadata import create_metadata
from support import drift

if TYPE_CHECKING:
    from axletree.package.drift.evidence import Evidence
    from axletree.package.wheel.metadata import Metadata

TABLE = drift.table()
WHOLE = "cuda-toolkit[cublas,cudart]==13.0.3; platform_system == 'Linux'"
FILE = "cuda_toolkit-13.0.3-py2.py3-none-any.whl"


def toolkit(version: str = "13.0.3") -> Metadata:
    requires = [
        'nvidia-cublas==13.1.1.3.*; extra == "cublas"',
        'nvidia-cuda-runtime==13.0.96.*; extra == "cudart"',
        'nvidia-cufft==12.0.0.61.*; extra == "cufft"',
    ]
    return create_metadata(name="cuda_toolkit", version=version, requires=requires)


def of_wheel(*requirements: str, gpus: tuple[str, ...] = ("cu130",)) -> tuple[Evidence, ...]:
    origin = RequirementOrigin(
        column="wheel", role="requires", file="torch-2.9.whl", phase="run", gpus=gpus, when="cu130"
    )
    return tuple(each for text in requirements for each in of_requirement(text, origin, table=TABLE))


def fanned(known: tuple[Evidence, ...], version: str = "13.0.3") -> tuple[Evidence, ...]:
    return fan_out(toolkit(version), known, file=FILE, table=TABLE, pythons=("3.12",))


def test_statements_with_extras_are_found_once() -> None:
    known = of_wheel(WHOLE, WHOLE, "cuda-toolkit==13.0.3", "numpy[x]>=1")
    ((evidence, requirement),) = requires_extras("CUDA_Toolkit", known)
    assert evidence.text == WHOLE
    assert requirement.extras == {"cublas", "cudart"}
    damaged = msgspec.structs.replace(evidence, text="cuda-toolkit[")
    assert requires_extras("cuda-toolkit", [damaged]) == ()
    ci = of_requirement(WHOLE, RequirementOrigin(column="ci", role="requires", file="x"), table=TABLE)
    assert requires_extras("cuda-toolkit", ci) == ()


def test_the_parts_that_were_asked_for_say_what_the_wheel_says() -> None:
    known = of_wheel(WHOLE, "numpy>=1.21")
    guesses = [each for each in known if each.range is None and each.project == "cuda-toolkit"]
    assert {each.spec for each in guesses} == {"*"}
    found = fanned(known)
    brought = [each for each in found if each.file == FILE]
    assert {each.spec for each in brought} == {"==13.1.1.3.*", "==13.0.96.*"}
    assert {each.optional for each in brought} == {""}
    assert {(each.gpus, each.when, each.phase, each.role) for each in brought} == {
        (("cu130",), "cu130; platform_system == 'Linux'".replace("'", '"'), "run", "requires")
    }
    assert {each.note for each in brought} == {"provided by cuda-toolkit[cublas,cudart]==13.0.3"}
    kept = [each for each in found if each.file != FILE]
    assert [each for each in guesses if each in kept] == [
        each for each in guesses if each.dependency not in {part.dependency for part in brought}
    ]
    assert {each.dependency for each in guesses} <= {each.dependency for each in brought}
    assert [each for each in known if each.range is not None] == kept


def test_what_two_wheels_of_one_gpu_say_alike_is_said_once() -> None:
    found = fanned((*of_wheel(WHOLE), *of_wheel("cuda-toolkit[cublas]==13.0.3")))
    assert len([each for each in found if each.file == FILE]) == 2
    both = fanned((*of_wheel(WHOLE), *of_wheel("cuda-toolkit[cublas]==13.0.3", gpus=("cu131",))))
    assert len([each for each in both if each.file == FILE]) == 3


def test_without_extras_nothing_changes() -> None:
    known = of_wheel("cuda-toolkit==13.0.3", "numpy")
    assert fanned(known) == known


def test_a_wheel_of_another_version_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        fanned(of_wheel(WHOLE), version="13.1.0")
    assert (
        str(error.value).splitlines()[0] == f"{FILE}: torch-2.9.whl requires cuda-toolkit==13.0.3, but this is 13.1.0"
    )
