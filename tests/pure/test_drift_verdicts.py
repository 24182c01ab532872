"""Verdicts: the table of conda-forge's feedstock, and each rule by itself."""

from __future__ import annotations

import pytest

from axletree.package.drift import ranges
from axletree.package.drift.channel import of_repodata
from axletree.package.drift.conda_recipe import read_conda_recipe
from axletree.package.drift.evidence import Column, Evidence, Phase, Role
from axletree.package.drift.requirements import RequirementOrigin, of_metadata
from axletree.package.drift.tree import of_tree, source_version
from axletree.package.drift.verdict import DriftRow, Verdict, contradictions, judge
from axletree.package.wheel.metadata import Metadata
from support import drift

TABLE = drift.table()
SEED: dict[str, tuple[Verdict, ...]] = {
    "cuda": ("ahead of upstream",),  # 11.8/12.1/12.4, recipe 12.6
    "magma": ("recipe looser", "ahead of upstream"),  # 2.6.1, channel 2.8.0
    "libabseil": ("only in recipe",),
    "libuv": ("only in recipe",),
    "mkl": ("conflict",),  # 2024.2.0, recipe <2024
    "nccl": ("recipe looser",),  # 2.21.5+: 2.23.4.1 may be it
    "libprotobuf": ("recipe looser",),  # 3.7.0rc2+
    "sleef": ("recipe looser",),  # 3.6+
    "filelock": ("same",),
    "fsspec": ("same",),
    "jinja2": ("same",),
    "networkx": ("same",),
    "numpy": ("recipe looser", "ahead of upstream"),  # 2.0.2 for build, channel 2.1.3
    "pyyaml": ("unknown",),  # mixed pins of CI
    "requests": ("unknown",),
    "six": ("recipe looser", "ahead of upstream"),  # 1.11.0, channel 1.16.0
    "sympy": ("recipe looser", "ahead of upstream"),  # ==1.13.1, recipe >=1.13.1,!=1.13.2, channel 1.13.3
    "typing-extensions": ("recipe looser",),  # >=4.8.0, recipe any
    "triton": ("missing in recipe",),  # 3.1.0, recipe none
    "opt-einsum": ("missing in recipe",),  # an extra
}


def seed_rows() -> dict[str, DriftRow]:
    origin = RequirementOrigin(column="wheel", role="requires", file="torch.whl", phase="run", pythons=("3.12",))
    metadata = Metadata(fields=tuple(("Requires-Dist", text) for text in drift.REQUIRES))
    recipe = read_conda_recipe(drift.META, file="meta.yaml", table=TABLE)
    evidence = [
        *of_tree(drift.pytorch_2_5(), table=TABLE, pythons=("3.9", "3.12")),
        *of_metadata(metadata, origin, table=TABLE),
        *recipe.evidence,
    ]
    names = {each.dependency for each in evidence}
    data = drift.repodata(drift.NEWEST, later={"mkl": "2025.0.0", "sympy": "1.14"})
    offers = of_repodata(data, names, file="repodata.json", table=TABLE, before=drift.DAY)
    rows = judge(evidence, {offer.dependency: offer for offer in offers}, worlds=(), inherits=False)
    return {row.dependency: row for row in rows}


def test_the_feedstocks_table() -> None:
    rows = seed_rows()
    assert {name: rows[name].verdicts for name in SEED} == SEED
    assert rows["opt-einsum"].judgements[0].optional
    assert not rows["triton"].judgements[0].optional
    newest = {name: row.offer.versions[-1][1] for name, row in rows.items() if row.offer is not None}
    assert newest["mkl"] == "2023.2.0"  # what came later does not count
    assert newest["libprotobuf"] == "5.28.2"


def test_the_gravest_come_first() -> None:
    order = [row.verdicts[0] for row in seed_rows().values()]
    assert order[:3] == ["conflict", "missing in recipe", "missing in recipe"]


def test_the_same_table_a_day_later_is_behind() -> None:
    recipe = read_conda_recipe(drift.META, file="meta.yaml", table=TABLE)
    evidence = [*of_tree(drift.pytorch_2_5(), table=TABLE, pythons=()), *recipe.evidence]
    data = drift.repodata(drift.NEWEST, later={"mkl": "2025.0.0"})
    offers = of_repodata(data, {"mkl"}, file="repodata.json", table=TABLE)
    rows = judge(evidence, {offer.dependency: offer for offer in offers}, worlds=(), inherits=False)
    mkl = next(row for row in rows if row.dependency == "mkl")
    assert mkl.verdicts == ("conflict", "behind newest")


def test_the_conda_recipe_tells_what_it_could_not_read() -> None:
    recipe = read_conda_recipe(drift.META, file="meta.yaml", table=TABLE)
    assert recipe.version == "2.5.1"
    assert [text.partition(": ")[2] for text in recipe.passed_over] == [
        "{{ compiler('cxx') }}",
        "{{ pin_subpackage('libtorch', exact=True) }}",
    ]
    cuda = next(each for each in recipe.evidence if each.dependency == "cuda")
    assert (cuda.spec, cuda.range, cuda.note) == ("{{ cuda_compiler_version }}", None, "its version is a template")
    assert not {"libcusomething", "pytest", "cuda-cudart"} & {each.dependency for each in recipe.evidence}


def test_the_tree_tells_its_version() -> None:
    assert source_version(drift.pytorch_2_5()) == ("2.5.1", "version.txt")


def said(column: Column, role: Role, spec: str, *, phase: Phase = "", **others: object) -> Evidence:
    fields: dict[str, object] = {"file": f"{column}.txt", "line": 1, "text": spec, **others}
    found = None if spec == "commit" else ranges.of_specifiers(spec.replace("any", ""))
    shown = spec.removeprefix("==") if role == "pin" else spec
    return Evidence(dependency="x", column=column, role=role, spec=shown, range=found, phase=phase, **fields)  # type: ignore[arg-type]


def verdicts(*evidence: Evidence, worlds: tuple[str, ...] = (), inherits: bool = False) -> tuple[Verdict, ...]:
    (row,) = judge(evidence, {}, worlds=worlds, inherits=inherits)
    return row.verdicts


@pytest.mark.parametrize(
    ("upstream", "recipe", "expected"),
    [
        (said("wheel", "requires", ">=1", phase="run"), ">=1", "same"),
        (said("wheel", "requires", ">=1", phase="run"), ">=2", "recipe tighter"),
        (said("wheel", "requires", ">=77.0.3", phase="run"), "<82", "recipe looser"),
        (said("wheel", "requires", "==2.30.7", phase="run"), "<2.29", "conflict"),
        (said("wheel", "requires", "==2.30.7", phase="run"), ">=2.31", "conflict"),
        (said("ci", "pin", "==2.30.7"), "<2.29", "conflict"),
        (said("ci", "pin", "==2.30.7"), ">=2.31", "ahead of upstream"),
        (said("ci", "pin", "==2.30.7"), ">=2.31,!=2.32", "ahead of upstream"),
        (said("vendored", "pin", ">=2.1"), "<2", "conflict"),
        (said("vendored", "pin", "commit"), ">=1", "unknown"),
        (said("ci", "pin", "==1", phase="test"), ">=2", "unknown"),
        (said("cmake", "mention", "any", phase="build"), ">=2", "same"),
        (said("wheel", "requires", "==1", phase="run", gpus=("cu130",)), "==2", "missing in recipe"),
    ],
)
def test_one_statement_against_the_recipe(upstream: Evidence, recipe: str, expected: Verdict) -> None:
    asked = said("recipe", "asks", recipe, gpus=("cu126",) if upstream.gpus else ())
    assert verdicts(upstream, asked) == (expected,)


def test_alternatives_of_one_file_are_one_set() -> None:
    pins = [said("ci", "pin", f"=={version}", line=n) for n, version in enumerate(("11.8", "12.1", "12.4"), 1)]
    assert verdicts(*pins, said("recipe", "asks", "==12.1")) == ("same",)
    assert verdicts(*pins, said("recipe", "asks", "==12.0")) == ("conflict",)  # neither, and not later than all


def test_phases_and_worlds_decide_what_is_missing() -> None:
    runs = said("wheel", "requires", ">=1", phase="run", gpus=("cu130",))
    builds = said("recipe", "asks", ">=1", phase="build")
    assert verdicts(runs, builds) == ("missing in recipe",)
    assert verdicts(runs, builds, inherits=True) == ("same",)
    assert verdicts(runs, worlds=("cpu",)) == ("unknown",)
    assert verdicts(runs, worlds=("cu130",)) == ("missing in recipe",)
    assert verdicts(said("vendored", "pin", "==1")) == ("same",)


def test_upstreams_check_of_its_nccl_pin_holds_for_every_dependency() -> None:
    pin, wheel = said("ci", "pin", "==2.27.5"), said("wheel", "requires", "==2.27.3", gpus=("cu128",))
    (finding,) = contradictions([pin, wheel])
    assert finding.rule == "drift/contradiction"
    assert "2.27.5" in finding.message
    assert "2.27.3" in finding.message
    assert len(finding.evidence) == 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (said("ci", "pin", "==2.27.5", gpus=("cu12",)), said("wheel", "requires", "==2.28.9", gpus=("cu130",))),
        (said("ci", "pin", "==1", line=1), said("ci", "pin", "==2", line=9)),
        (said("ci", "pin", "==1"), said("wheel", "requires", ">=1")),
        (said("ci", "pin", "==1"), said("recipe", "asks", "==2")),
        (said("ci", "pin", "==1"), said("cmake", "mention", "any")),
        (
            said("ci", "pin", "==1", when='python_version < "3.10"'),
            said("wheel", "requires", "==2", when='python_version >= "3.10"'),
        ),
    ],
)
def test_no_contradiction(one: Evidence, other: Evidence) -> None:
    assert contradictions([one, other]) == ()


def test_contradicting_worlds_are_found_by_their_beginning() -> None:
    pin = said("ci", "pin", "==2.27.5", gpus=("cu12",))
    assert contradictions([pin, said("wheel", "requires", "==2.28.9", gpus=("cu128",))])
