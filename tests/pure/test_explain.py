"""Why a stage runs again, in the words that people read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from axletree.core.values import StageId, canonical_json
from axletree.plan.explain import why
from support.targets import MANY, SURROUNDINGS, plan_of, run

if TYPE_CHECKING:
    from axletree.plan.keys import Resolved


def plain(resolved: Resolved) -> dict[str, Any]:
    """The ingredients as JSON has them."""
    found: dict[str, Any] = msgspec.json.decode(canonical_json(resolved.ingredients))
    return found


LAST: dict[str, Any] = {
    "action": {"name": "build", "revision": 2},
    "axes": {"python": "3.11"},
    "parameters": {
        "directory": ".",
        "env": {"CFLAGS": "-O2"},
        "commands": ["make", "make install"],
        "patches": [{"file": "a.patch", "strip": 1, "blob": "11"}, {"file": "b.patch", "strip": 1, "blob": "22"}],
        "wheels": [{"name": "numpy", "version": "2.3", "filename": "numpy-2.3-cp311.whl", "sha256": "33"}],
        "config": {"text": "one\ntwo\n"},
        "icon": "a" * 64,
        "bundled": {"libraries": "a" * 64},
    },
    "inputs": {"source": "tree:aa", "in:lib": "tree:bb"},
    "tools": {"c++": {"version": "c++ 13.1"}},
    "environ": {"CXXFLAGS": None},
    "host": {"processor": "old"},
    "epoch": 1,
}


def changed(path: str, value: Any) -> dict[str, Any]:
    """The ingredients with one of them replaced, or removed (``...``)."""

    def put(table: dict[str, Any], names: list[str]) -> dict[str, Any]:
        head, *rest = names
        new = put(table[head], rest) if rest else value
        return {**{k: v for k, v in table.items() if k != head}, **({} if new is ... else {head: new})}

    return put(LAST, path.split("/"))


NUMPY = {"name": "numpy", "version": "2.4", "filename": "numpy-2.4-cp311.whl", "sha256": "44"}
PATCHES = LAST["parameters"]["patches"]


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        ("action/revision", 3, "the code of action 'build' is newer: revision 2 -> 3"),
        ("action/revision", 1, "the code of action 'build' is older: revision 2 -> 1"),
        (
            "action/distribution",
            "demo 1.1",
            "a different distribution provides the action 'build': (none) -> demo 1.1",
        ),
        ("action/name", "run", "the action name: build -> run"),
        ("axes/python", "3.12", "axis python: 3.11 -> 3.12"),
        ("axes/gpu", "cpu", "axis gpu: (none) -> cpu"),
        ("axes", ..., "axis python: 3.11 -> (none)"),
        ("parameters/commands", ..., "parameter commands: - make, - make install"),
        ("parameters/targets", ["all"], "parameter targets: + all"),
        ("parameters/options", {"USE_X": "ON"}, "parameter options.USE_X: (none) -> ON"),
        ("parameters/env", ..., "parameter env.CFLAGS: -O2 -> (none)"),
        ("parameters/directory", "sub", "parameter directory: . -> sub"),
        ("parameters/env/CFLAGS", "-O3", "parameter env.CFLAGS: -O2 -> -O3"),
        ("parameters/env/LDFLAGS", "-s", "parameter env.LDFLAGS: (none) -> -s"),
        ("parameters/env/CFLAGS", ..., "parameter env.CFLAGS: -O2 -> (none)"),
        ("parameters/commands", ["make -k", "make install"], "parameter commands: + make -k, - make"),
        (
            "parameters/commands",
            ["make install", "make"],
            "parameter commands: the order or the number of items changed",
        ),
        ("parameters/commands", list("abcdef"), "parameter commands: + a, + b, + c, + d and 4 more"),
        ("parameters/patches", PATCHES[:1], "parameter patches: - b.patch"),
        (
            "parameters/patches",
            [{**PATCHES[0], "blob": "99"}, PATCHES[1]],
            "parameter patches: the content of a.patch changed",
        ),
        ("parameters/wheels", [NUMPY], "parameter wheels: + numpy-2.4-cp311.whl, - numpy-2.3-cp311.whl"),
        ("parameters/icon", "b" * 64, "parameter icon changed"),
        (
            "parameters/bundled/libraries",
            "b" * 64,
            "libraries of this machine were added, removed or updated",
        ),
        ("parameters/config/text", "one\nthree\n", "parameter config.text: + three, - two"),
        ("inputs/source", "tree:cc", "input source changed"),
        ("inputs/in:more", "tree:dd", "input in:more was added or removed"),
        ("inputs/in:lib", ..., "input in:lib was added or removed"),
        ("tools/c++/version", "c++ 14.2", "tool c++.version: c++ 13.1 -> c++ 14.2"),
        ("environ/CXXFLAGS", "-g", "variable CXXFLAGS: (none) -> -g"),
        ("host/processor", "new", "host fact processor: old -> new"),
        ("epoch", 2, "SOURCE_DATE_EPOCH: 1 -> 2"),
        (
            "parameters/env/CFLAGS",
            "-I" + "x" * 80,
            "parameter env.CFLAGS: -O2 -> -I" + "x" * 26 + "..." + "x" * 28,
        ),
    ],
)
def test_one_reason(path: str, value: Any, text: str) -> None:
    assert why(changed(path, value), LAST) == (text,)


def test_never_ran() -> None:
    assert why(LAST, None) == ("it has not run yet",)
    assert why(LAST, None, present=False) == ("it has not run yet",)


def test_nothing_changed() -> None:
    assert why(LAST, LAST) == ()
    assert why(LAST, LAST, present=False) == ("its result is no longer in the store",)


def test_a_change_is_told_rather_than_that_the_old_result_is_gone() -> None:
    assert why(changed("epoch", 2), LAST, present=False) == ("SOURCE_DATE_EPOCH: 1 -> 2",)


def test_a_handful_of_reasons_at_most() -> None:
    now = changed("parameters/env", {f"V{number}": str(number) for number in range(12)})
    reasons = why(now, LAST)
    assert len(reasons) == 9
    assert reasons[-1] == "and 5 more"


def test_reasons_of_a_real_plan() -> None:
    """The words are those of the steps that plans are made of."""
    before = run(plan_of(MANY), {}).resolved
    text = MANY.replace("make GPU", "make -s GPU").replace("[environments.build]", "[environments.build]\n#")
    after = run(plan_of(text), {}, SURROUNDINGS).resolved
    lib, bind = StageId("lib[cpu]"), StageId("bind[py311-cpu]")
    assert why(plain(after[lib]), plain(before[lib])) == (
        "parameter commands: + make -s GPU=cpu DESTDIR=$AXLETREE_OUT, - make GPU=cpu DESTDIR=$AXLETREE_OUT",
    )
    assert why(plain(after[bind]), plain(before[bind])) == ("input in:lib changed",)
