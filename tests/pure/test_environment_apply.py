"""Activation as a function: idempotent, reversible, nested, and the user's changes stay."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError
from axletree.environment.apply import ACTIVE, ENV, activated, deactivated, level_of, undoing
from axletree.environment.delta import Activation, Delta, checked
from axletree.environment.shells import quoted, undoing_text

NAMES = ("PATH", "LD_LIBRARY_PATH", "CC", "CFLAGS", "EMPTY")
VALUES = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=12)
ENVIRONS = st.dictionaries(st.sampled_from(NAMES), VALUES | st.sampled_from(["", ":", "/a:/b", "/a::/a"]))
DELTAS = st.builds(
    Delta,
    variable=st.sampled_from(NAMES),
    operation=st.sampled_from(["prepend", "append", "set", "unset"]),
    value=VALUES | st.sampled_from(["/env/bin", "/env/a:/env/b"]),
    origin=st.just("test"),
    separator=st.sampled_from([":", " "]),
)


def activations(folder: str) -> st.SearchStrategy[Activation]:
    return st.builds(Activation, folder=st.just(folder), deltas=st.lists(DELTAS, max_size=6).map(tuple))


def delta(variable: str, operation: str, value: str = "", separator: str = ":") -> Delta:
    return Delta(variable=variable, operation=operation, value=value, origin="test", separator=separator)  # type: ignore[arg-type]


def env(*deltas: Delta, folder: str = "/env") -> Activation:
    return Activation(folder=folder, deltas=deltas)


@given(ENVIRONS, activations("/env"))
def test_deactivating_gives_back_what_was(environ: dict[str, str], activation: Activation) -> None:
    assert deactivated(activated(environ, activation)) == environ


@given(ENVIRONS, activations("/env"))
def test_activating_twice_is_activating_once(environ: dict[str, str], activation: Activation) -> None:
    once = activated(environ, activation)
    assert activated(once, activation) == once


@given(ENVIRONS, activations("/outer"), activations("/inner"))
def test_one_over_another_leads_back_step_by_step(
    environ: dict[str, str], outer: Activation, inner: Activation
) -> None:
    first = activated(environ, outer)
    second = activated(first, inner)
    assert (level_of(second), second[ENV]) == (2, "/inner")
    assert deactivated(second) == first
    assert deactivated(deactivated(second)) == environ


@given(ENVIRONS, activations("/env"))
def test_nothing_active_is_nothing_to_undo(environ: dict[str, str], activation: Activation) -> None:
    assert undoing(environ) == ()
    assert not any(name.startswith("AXLETREE_") for name in deactivated(activated(environ, activation)))


@pytest.mark.parametrize("before", [None, "", "/usr/bin", "/usr/bin:/env/bin", "/a::/b"])
@pytest.mark.parametrize("edit", ["/mine:{}", "{}:/mine"])
def test_what_the_user_added_to_a_list_meanwhile_stays(before: str | None, edit: str) -> None:
    environ = {} if before is None else {"PATH": before}
    active = activated(environ, env(delta("PATH", "prepend", "/env/bin:/env/more")))
    active["PATH"] = edit.format(active["PATH"])
    expected = {None: "/mine", "": "/mine"}.get(before, edit.format(before))
    assert deactivated(active) == {"PATH": expected}


def test_an_entry_of_the_users_that_is_also_ours_stays() -> None:
    active = activated({"PATH": "/env/bin:/usr/bin"}, env(delta("PATH", "prepend", "/env/bin")))
    active["PATH"] += ":/mine"
    assert deactivated(active) == {"PATH": "/env/bin:/usr/bin:/mine"}


def test_a_value_that_the_user_set_meanwhile_stays() -> None:
    active = activated({"CC": "old"}, env(delta("CC", "set", "/env/bin/cc")))
    assert deactivated({**active, "CC": "mine:/env/bin/cc"}) == {"CC": "mine:/env/bin/cc"}
    del active["CC"]
    assert deactivated(active) == {}


def test_an_empty_list_gains_no_entry_for_the_current_folder() -> None:
    active = activated({"LD_LIBRARY_PATH": ""}, env(delta("LD_LIBRARY_PATH", "prepend", "/env/lib")))
    assert active["LD_LIBRARY_PATH"] == "/env/lib"
    assert deactivated(active) == {"LD_LIBRARY_PATH": ""}


def test_flags_are_a_list_with_spaces() -> None:
    active = activated({"CFLAGS": "-O2"}, env(delta("CFLAGS", "append", "-I/env", " ")))
    assert active["CFLAGS"] == "-O2 -I/env"
    assert deactivated({**active, "CFLAGS": "-g -O2 -I/env"}) == {"CFLAGS": "-g -O2"}


@pytest.mark.parametrize("text", ["x", "-1", "1; echo", "", "9" * 4000, "\u0661"])
def test_a_level_that_is_no_number_is_none(text: str) -> None:
    assert level_of({ACTIVE: text}) == 0
    assert undoing({ACTIVE: text}) == ()


def test_names_in_a_foreign_record_that_are_no_names_are_passed_over() -> None:
    record = {ACTIVE: "1", "AXLETREE_1_HOW": "PATH:x $(touch_x):x A;B:x CC:q", "AXLETREE_1_$(touch x)": ""}
    record |= {"PATH": "/bin", "AXLETREE_1_NOW_PATH": "/bin"}
    assert {change.variable for change in undoing(record)} == {
        "PATH",
        "AXLETREE_1_HOW",
        "AXLETREE_1_NOW_PATH",
        ACTIVE,
    }


def test_what_no_shell_can_set_is_refused_all_at_once() -> None:
    bad = env(delta("A B", "set"), delta("AXLETREE_1_WAS_X", "set"), delta("CC", "set", "a\0b"))
    with pytest.raises(IntegrityError) as caught:
        checked(bad)
    assert len(caught.value.problems) == 3


def test_quotes() -> None:
    assert quoted("it's", "bash") == "'it'\\''s'"
    assert quoted("it's \\", "fish") == "'it\\'s \\\\'"
    assert undoing_text((), "bash") == "true\n"
