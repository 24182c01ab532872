"""Keys: the same ingredients give the same key, each ingredient changes it, and nothing else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from axletree.core.images import ImageId, StageImage
from axletree.core.records import Ingredients
from axletree.core.values import Key, StageId, canonical_json, digest_of, key_of
from axletree.plan.actions.fetch import FolderSource
from axletree.plan.actions.table import ACTIONS
from axletree.plan.keys import Surroundings, resolve_plan
from axletree.recipe.locks import LockedWheel
from support.requests import NOTHING, lookup_in
from support.targets import MANY, SURROUNDINGS, ids, locked, plan_of, recipe_texts, run, targets_at

if TYPE_CHECKING:
    from axletree.core.records import StageRecord
    from axletree.plan.actions.spec import Facts
    from axletree.plan.graph import Plan

CLOSED = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])

TOOLED = MANY.replace(
    'action = "run"\naxes = ["gpu"]', 'action = "run"\naxes = ["gpu"]\ntools = ["c++"]\npass-env = ["EXTRA"]'
)


def keys_of(plan: Plan, surroundings: Surroundings = SURROUNDINGS) -> dict[StageId, Key]:
    """Keys as far as they can be known with an empty store."""
    return {stage: each.key for stage, each in resolve_plan(plan, ACTIONS.__getitem__, surroundings, NOTHING).items()}


def changed(before: dict[StageId, Key], after: dict[StageId, Key]) -> list[str]:
    return [stage for stage in before if before[stage] != after.get(stage)]


def test_equal_recipes_have_equal_keys_whatever_they_look_like() -> None:
    """Comments, and the order of tables and keys, are no part of what is built."""
    moved = "# for all\n" + MANY.replace('axes = ["gpu"]\ncommands', "# made once\naxes = [ 'gpu' ]\ncommands")
    head, _, rest = moved.partition("[tests.smoke]")
    assert keys_of(plan_of(MANY)) == keys_of(plan_of(head + "[tests.smoke]" + rest))


@pytest.mark.parametrize(
    ("old", "new", "first"),
    [
        ("make GPU={gpu}", "make -k GPU={gpu}", ["lib[cpu]", "lib[cu130]"]),
        ('commands = ["make', 'env = { A = "1" }\ncommands = ["make', ["lib[cpu]", "lib[cu130]"]),
        ('commands = ["make', 'directory = "sub"\ncommands = ["make', ["lib[cpu]", "lib[cu130]"]),
        ('inputs = ["lib"]', 'inputs = ["lib"]\nconfig = { a = "b" }', ["bind[py311-cpu]", "bind[py312-cu130]"]),
        ('inputs = ["lib"]', "inputs = []", ["bind[py311-cpu]", "bind[py312-cu130]"]),
        ('requires = ["small-lib', 'requires = ["numpy", "small-lib', ["pack:small[py311-cpu]"]),
        ('imports = ["small"]', 'imports = ["small", "os"]', ["test:smoke:pip[py311-cpu]"]),
        ('imports = ["small"]', 'imports = ["small"]\ncommands = ["true"]', ["test:smoke:pip[py311-cpu]"]),
        ('imports = ["small"]', 'imports = ["small"]\nfiles = ["t.py"]', ["test:smoke:pip[py311-cpu]"]),
    ],
)
def test_what_the_recipe_says_of_a_stage_is_in_its_key(old: str, new: str, first: list[str]) -> None:
    assert old in MANY
    touched = changed(keys_of(plan_of(MANY)), keys_of(plan_of(MANY.replace(old, new, 1))))
    assert set(first) <= set(touched)
    assert "fetch" not in touched
    kind = first[0].partition("[")[0]
    order = ids(plan_of(MANY))
    assert not [stage for stage in touched if order.index(stage) < order.index(first[0]) and not stage.startswith(kind)]


@pytest.mark.parametrize(
    "addition",
    [
        "resources = { cores = 4, memory-per-job = '2 GB' }",
        "workspace = true",
        'parallel = "jobs"',
    ],
)
def test_what_cannot_change_a_result_is_in_no_key(addition: str) -> None:
    more = MANY.replace('inputs = ["lib"]', f'inputs = ["lib"]\n{addition}')
    assert more != MANY
    assert keys_of(plan_of(MANY)) == keys_of(plan_of(more))


@pytest.mark.parametrize(
    ("change", "prefixes"),
    [
        ({"source": FolderSource(tree=digest_of(b"other"))}, ["fetch"]),
        ({"compressor": "zlib-ng 2.2"}, ["pack:"]),
        ({"generator": "axletree 99"}, ["pack:"]),
        ({"policy": digest_of(b"other")}, ["pack:", "audit:"]),
        ({"interpreters": {"3.12": ("/opt/python/3.12",)}}, [f"pack:small[py312-{gpu}]" for gpu in ("cpu", "cu130")]),
        ({"driver_libraries": ("libcuda.so.*",)}, ["audit:"]),
        ({"clients": {"pip": "26.1", "uv": "0.9"}}, ["test:smoke:pip"]),
    ],
)
def test_what_was_read_beforehand_is_in_the_keys_that_use_it(change: dict[str, Any], prefixes: list[str]) -> None:
    """Only those: what is behind them changes if their results do."""
    store: dict[Key, StageRecord] = {}
    content = lambda now: f"{now.ingredients.axes}{now.ingredients.action}"  # noqa: E731 (the same tree each time)
    run(plan_of(MANY), store, makes=content)
    ran = run(plan_of(MANY, **change), store, makes=content).ran
    assert ran == [stage for stage in ids(plan_of(MANY)) if stage.startswith(tuple(prefixes))]


def test_an_environment_is_its_wheels_and_its_interpreter() -> None:
    """Not what was asked for: a requirement that the lock meets already changes nothing."""
    wheel = LockedWheel(name="a", version="1", filename="a-1-py3-none-any.whl", size=1, sha256="00")

    def key(text: str = MANY, python: str = "3.11.9", **changes: Any) -> Key:
        (environment,) = targets_at(text, {"py311-cpu"})[0].environments
        made = locked(environment, wheels=[msgspec.structs.replace(wheel, **changes)])
        made = msgspec.structs.replace(made, python={"version": python})
        return keys_of(plan_of(text, {"py311-cpu"}, environments={environment.lock: made}))[
            StageId("environment:build[py311]")
        ]

    assert key() == key(MANY.replace('requires = ["setuptools"]', 'requires = ["setuptools", "a"]'))
    others = [key(sha256="11"), key(version="2"), key(filename="a-1-1-py3-none-any.whl"), key(python="3.11.10")]
    assert len({key(), *others}) == 5


def test_the_compilers_of_the_system_are_in_the_keys_of_all_that_compile() -> None:
    """Whether they were declared or not: they are found. Where there are none, keys are as they would be without."""
    with_compiler = msgspec.structs.replace(SURROUNDINGS, toolchain={"c++": {"version": "g++ 14.2"}})
    with_newer = msgspec.structs.replace(SURROUNDINGS, toolchain={"c++": {"version": "g++ 15.1"}})
    plan = plan_of(MANY)
    touched = {
        plan.stages[StageId(stage)].action for stage in changed(keys_of(plan, with_compiler), keys_of(plan, with_newer))
    }
    assert {"run", "build"} <= touched
    assert not {"fetch", "patch", "environment"} & touched
    resolved = resolve_plan(plan, ACTIONS.__getitem__, SURROUNDINGS, NOTHING)
    assert not any(b'"tools"' in canonical_json(each.ingredients) for each in resolved.values())


def test_a_declared_tool_counts_instead_of_the_systems() -> None:
    surroundings = msgspec.structs.replace(
        SURROUNDINGS, tools={"c++": {"version": "mine"}}, toolchain={"c++": {"version": "1"}, "cc": {"version": "1"}}
    )
    resolved = resolve_plan(plan_of(TOOLED), ACTIONS.__getitem__, surroundings, NOTHING)
    assert resolved[StageId("lib[cpu]")].ingredients.tools == {"c++": {"version": "mine"}, "cc": {"version": "1"}}


def test_gpu_compilers_of_the_system_are_in_the_keys_of_stages_that_see_them() -> None:
    """A stage that declares one of them sees all; from others they are hidden, so nothing depends on them."""
    text = TOOLED.replace('tools = ["c++"', 'tools = ["nvcc", "c++"')
    assert text != TOOLED
    none, one, other = (
        msgspec.structs.replace(SURROUNDINGS, tools={"nvcc": {"version": "12.6"}}, toolkits=toolkits)
        for toolkits in ({}, {"hipcc": {"version": "6.4"}}, {"hipcc": {"version": "7.1"}})
    )
    plan = plan_of(text)
    keys = [keys_of(plan, each)[StageId("lib[cpu]")] for each in (none, one, other)]
    assert len(set(keys)) == 3
    assert keys_of(plan_of(TOOLED), none) == keys_of(plan_of(TOOLED), other)
    both = msgspec.structs.replace(one, toolkits={"nvcc": {"version": "of the system"}})
    for stage, resolved in resolve_plan(plan, ACTIONS.__getitem__, both, NOTHING).items():
        expected = {"version": "12.6"} if "nvcc" in plan.stages[stage].step.tools else None
        assert resolved.ingredients.tools.get("nvcc") == expected


def test_a_tool_is_in_the_keys_of_stages_that_use_it() -> None:
    plan = plan_of(TOOLED)
    old, new = (
        msgspec.structs.replace(SURROUNDINGS, tools={"c++": {"version": version}, "ld": {"version": version}})
        for version in ("13.1", "14.2")
    )
    touched = changed(keys_of(plan, old), keys_of(plan, new))
    assert "lib[cpu]" in touched
    assert not {"fetch", "environment:build[py311]"} & set(touched)
    assert keys_of(plan_of(MANY), old) == keys_of(plan_of(MANY), new)


def test_a_variable_is_in_the_keys_of_stages_that_let_it_through() -> None:
    plan = plan_of(TOOLED)
    variants = [SURROUNDINGS, *(msgspec.structs.replace(SURROUNDINGS, environ={"EXTRA": text}) for text in ("", "-g"))]
    keys = [keys_of(plan, each) for each in variants]
    assert len({each[StageId("lib[cpu]")] for each in keys}) == 3, "unset, empty and set are three things"
    assert len({each[StageId("fetch")] for each in keys}) == 1
    assert len({keys_of(plan_of(MANY), each)[StageId("lib[cpu]")] for each in variants}) == 1


def test_host_facts_are_in_the_keys_of_tests_only() -> None:
    other = msgspec.structs.replace(SURROUNDINGS, host={"machine": "aarch64"})
    touched = changed(keys_of(plan_of(MANY)), keys_of(plan_of(MANY), other))
    assert touched == ids(plan_of(MANY), "test:")


def test_in_an_image_a_test_depends_on_gpus_that_are_passed_and_not_on_the_hosts_c_library() -> None:
    """So the keys of a job in the image, whose C library is the image's, are those of everybody else."""
    text = MANY.replace('imports = ["small"]', 'imports = ["small"]\nimage = "old"')
    text += '[images.old]\nfrom = "oci:old"\n'
    plan = plan_of(text, images={"old": StageImage(id=ImageId("0" * 64))})
    host = {"machine": "x86_64", "libc": "glibc-2.36", "gpus": "nvidia0"}
    before = keys_of(plan, msgspec.structs.replace(SURROUNDINGS, host=host))

    def touched(*, passes_gpus: bool = False, **other: str) -> bool:
        now = msgspec.structs.replace(SURROUNDINGS, host=host | other, passes_gpus=passes_gpus)
        return bool(changed(before, keys_of(plan, now)))

    assert not touched(libc="glibc-2.31")
    assert not touched(gpus="")
    assert touched(passes_gpus=True)
    assert touched(machine="aarch64")


def test_a_stage_in_an_image_has_the_python_of_its_environment_in_its_key() -> None:
    """And no other: which variants are built at the same time changes no key."""
    text = MANY.replace('imports = ["small"]', 'imports = ["small"]\nimage = "old"')
    text += '[images.old]\nfrom = "oci:old"\n'
    plan = plan_of(text, images={"old": StageImage(id=ImageId("0" * 64))})
    versions = {each.step.axes["python"] for each in plan.stages.values() if each.action == "test"}
    one = min(versions)
    pythons = {version: f"python of {version}" for version in versions}

    def keys(**portable: str) -> dict[StageId, Key]:
        return keys_of(plan, msgspec.structs.replace(SURROUNDINGS, portable={**pythons, **portable}))

    assert len(versions) > 1
    found = changed(keys(), keys(**{one: "another"}))
    assert {plan.stages[StageId(stage)].step.axes["python"] for stage in found} == {one}
    alone = keys_of(plan, msgspec.structs.replace(SURROUNDINGS, portable={one: pythons[one]}))
    gone = changed(keys(), alone)
    assert one not in {plan.stages[StageId(stage)].step.axes["python"] for stage in gone}


def test_the_epoch_is_in_the_keys_of_what_writes_dates() -> None:
    store: dict[Key, StageRecord] = {}
    content = lambda now: f"{now.ingredients.axes}{now.ingredients.action}"  # noqa: E731
    plan = plan_of(MANY)
    run(plan, store, makes=content)
    ran = run(plan, store, msgspec.structs.replace(SURROUNDINGS, epoch=1_700_000_000), makes=content).ran
    assert {plan.stages[StageId(stage)].action for stage in ran} == {"run", "build", "pack", "index"}


def test_a_newer_action_does_not_serve_results_of_the_older() -> None:
    plan = plan_of(MANY)
    newer = {**ACTIONS, "build": msgspec.structs.replace(ACTIONS["build"], revision=ACTIONS["build"].revision + 1)}
    before = keys_of(plan)
    after = {stage: each.key for stage, each in resolve_plan(plan, newer.__getitem__, SURROUNDINGS, NOTHING).items()}
    touched = changed(before, after)
    assert "bind[py311-cpu]" in touched
    assert "lib[cpu]" not in touched


def test_a_key_is_the_digest_of_its_ingredients() -> None:
    for resolved in run(plan_of(TOOLED), {}).resolved.values():
        assert resolved.key == key_of(resolved.ingredients)
        written = canonical_json(resolved.ingredients)
        assert canonical_json(msgspec.json.decode(written, type=Ingredients)) == written


def test_inputs_count_by_their_trees_and_by_their_key_until_they_exist() -> None:
    plan = plan_of(MANY)
    store: dict[Key, StageRecord] = {}
    lib, bind = StageId("lib[cpu]"), StageId("bind[py311-cpu]")
    before = resolve_plan(plan, ACTIONS.__getitem__, SURROUNDINGS, lookup_in(store))
    assert before[StageId("fetch")].certain
    assert not before[lib].certain
    assert before[bind].ingredients.inputs["in:lib"] == f"key:{before[lib].key}"
    assert run(plan, store).ran == ids(plan)
    after = resolve_plan(plan, ACTIONS.__getitem__, SURROUNDINGS, lookup_in(store))
    assert all(each.certain and each.record is not None for each in after.values())
    record = after[lib].record
    assert record is not None
    assert after[bind].ingredients.inputs["in:lib"] == f"tree:{record.tree}"


def test_a_second_run_does_nothing() -> None:
    store: dict[Key, StageRecord] = {}
    run(plan_of(MANY), store)
    assert run(plan_of(MANY), store).ran == []


def test_a_rebuild_ends_where_the_result_is_as_before() -> None:
    store: dict[Key, StageRecord] = {}
    run(plan_of(MANY), store, trees={"lib[cpu]": "libsmall.so"})
    other = plan_of(MANY.replace("make GPU", "make -s GPU"))
    assert run(other, store, trees={"lib[cpu]": "libsmall.so", "lib[cu130]": "another"}).ran == [
        "lib[cpu]",
        *[stage for stage in ids(other) if "cu130" in stage],
    ]


def test_a_stage_whose_result_is_gone_runs_again_and_alone_if_it_makes_the_same() -> None:
    plan = plan_of(MANY)
    store: dict[Key, StageRecord] = {}
    first = run(plan, store)
    del store[first.resolved[StageId("lib[cpu]")].key]
    assert run(plan, store).ran == ["lib[cpu]"]


def test_a_predicted_key_is_not_looked_up() -> None:
    """An input that is to be made may come out as another tree; a result of the predicted key would be a guess."""
    asked: list[Key] = []

    def lookup(key: Key, _facts: type[Facts]) -> StageRecord | None:
        asked.append(key)
        return None

    plan = plan_of(MANY)
    resolved = resolve_plan(plan, ACTIONS.__getitem__, SURROUNDINGS, lookup)
    assert sorted(asked) == sorted(each.key for each in resolved.values() if each.certain)
    assert {stage for stage, each in resolved.items() if each.certain} == {
        stage.id for stage in plan.stages.values() if not stage.needs
    }


@given(recipe_texts(), st.randoms())
@CLOSED
def test_dropping_variants_never_changes_the_keys_of_the_others(text: str, random: Any) -> None:
    plan = plan_of(text)
    rest = {variant for variant in plan.variants if random.random() < 0.5} or {plan.variants[-1]}
    part = plan_of(text, only=rest)
    whole, keys = keys_of(plan), keys_of(part)
    assert keys == {stage: whole[stage] for stage in part.stages}
    store: dict[Key, StageRecord] = {}
    run(plan, store)
    assert run(part, store).ran == []


@given(recipe_texts())
@CLOSED
def test_no_two_stages_have_one_key_unless_they_do_the_same(text: str) -> None:
    plan = plan_of(text)
    by_key: dict[Key, Any] = {}
    for resolved in run(plan, {}).resolved.values():
        assert by_key.setdefault(resolved.key, resolved.ingredients) == resolved.ingredients
