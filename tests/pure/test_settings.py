"""Settings as values: which place wins, what each place may say."""

from __future__ import annotations

import itertools

import pytest

from axletree.core.errors import RecipeError, UsageError
from axletree.recipe.settings import (
    KEYS,
    OF_THE_USER,
    Given,
    Settings,
    from_file,
    from_options,
    from_variables,
    merge,
    variable_of,
)

OPTIONS = from_options(index_url="https://option", find_links=("/option",), offline=True)
VARIABLES = from_variables({"AXLETREE_INDEX_URL": "https://variable", "AXLETREE_FIND_LINKS": "/a /b"})
PROJECT = from_file("jobs = 3\noffline = false\n", filename="axletree.toml", project=True)
USER = from_file(
    'index-url = "https://user"\njobs = 2\nstore = "/user"\nfind-links = ["/user"]\n', filename="s.toml", project=False
)


def test_the_most_important_place_wins_and_lists_are_joined() -> None:
    loaded = merge([OPTIONS, VARIABLES, PROJECT, USER])
    assert loaded.settings == Settings(
        store="/user",
        jobs=3,
        offline=True,
        index_url="https://option",
        find_links=("/option", "/a", "/b", "/user"),
    )
    assert loaded.origins["store"] == ("s.toml:3",)
    assert loaded.origins["jobs"] == ("axletree.toml:1",)
    assert loaded.origins["index-url"] == ("--index-url",)
    assert loaded.origins["find-links"] == ("--find-links", "AXLETREE_FIND_LINKS", "s.toml:4")
    assert loaded.origins["out"] == ("default",)
    assert merge([VARIABLES, PROJECT, USER]).settings.index_url == "https://variable"
    assert merge([]).settings == Settings()


PLACES = [Given(values={key: value}, origins={key: name}) for key, name, value in [("jobs", "a", 1), ("jobs", "b", 2)]]


@pytest.mark.parametrize("places", list(itertools.permutations(PLACES)))
def test_the_order_decides_and_nothing_else(places: tuple[Given, ...]) -> None:
    assert merge(places).origins["jobs"] == (places[0].origins["jobs"],)


def test_no_index_silences_its_own_place_and_those_below() -> None:
    forbidden = from_variables({"AXLETREE_NO_INDEX": "1", "AXLETREE_EXTRA_INDEX_URL": "https://variable"})
    settings = merge([forbidden, USER]).settings
    assert (settings.no_index, settings.index_url, settings.extra_index_url) == (True, None, ())
    assert settings.find_links == ("/user",)
    above = merge([OPTIONS, forbidden, USER])
    assert (above.settings.index_url, above.origins["index-url"]) == ("https://option", ("--index-url",))


def test_a_more_important_place_may_allow_indexes_again() -> None:
    forbidding = from_file('no-index = true\nindex-url = "https://user"\n', filename="s.toml", project=False)
    settings = merge([from_variables({"AXLETREE_NO_INDEX": "0"}), forbidding]).settings
    assert (settings.no_index, settings.index_url) == (False, "https://user")


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("true", True), ("ON", True), ("0", False), ("no", False), ("False", False)]
)
def test_truth_values_of_variables(text: str, value: bool) -> None:  # noqa: FBT001 (a parameter of a test)
    assert from_variables({"AXLETREE_OFFLINE": text}).values == {"offline": value}


def test_an_empty_variable_says_nothing_and_others_are_not_ours() -> None:
    assert from_variables({"AXLETREE_OFFLINE": "", "AXLETREE_JOBS": " ", "AXLETREE_PARENT": "7"}) == Given()


def test_all_wrong_variables_are_told() -> None:
    with pytest.raises(UsageError) as caught:
        from_variables({"AXLETREE_OFFLINE": "perhaps", "AXLETREE_JOBS": "0", "AXLETREE_NO_INDEX": "2"})
    assert [(problem.key, problem.message) for problem in caught.value.problems] == [
        ("AXLETREE_JOBS", "'0' is not valid: expected a whole number of 1 or more"),
        ("AXLETREE_OFFLINE", "'perhaps' is not valid: expected 1 or 0"),
        ("AXLETREE_NO_INDEX", "'2' is not valid: expected 1 or 0"),
    ]


def test_every_key_has_a_variable() -> None:
    assert variable_of("index-url") == "AXLETREE_INDEX_URL"
    assert KEYS.keys() > OF_THE_USER


def test_everything_wrong_in_a_file_is_told_with_its_line() -> None:
    text = 'ofline = true\n\njobs = 0\nfind-links = "x"\nout = 3\nstore = "~"\n'
    with pytest.raises(UsageError) as caught:
        from_file(text, filename="s.toml", project=False)
    told = [(problem.line, problem.key, problem.message, problem.hint) for problem in caught.value.problems]
    assert told == [
        (1, "ofline", "unknown key", "did you mean 'offline'?"),
        (3, "jobs", "expected a whole number of at least 1, found the number 0", None),
        (4, "find-links", "expected a list of strings, found the string 'x'", 'write ["x"]'),
        (5, "out", "expected a string, found the number 3", 'write "3" with quotes'),
    ]


def test_an_empty_text_is_no_value() -> None:
    with pytest.raises(UsageError, match=r"s\.toml:2: store: the value is empty"):
        from_file('\nstore = ""\n', filename="s.toml", project=False)


def test_a_file_that_is_no_toml() -> None:
    with pytest.raises(RecipeError, match=r"s\.toml:1: the file is not valid TOML"):
        from_file("jobs = ", filename="s.toml", project=False)


@pytest.mark.parametrize("key", sorted(OF_THE_USER))
def test_a_project_may_not_say_where_things_come_from(key: str) -> None:
    texts = {"store": "x", "index-url": "https://x", "runner": "podman"}
    value = f'"{texts[key]}"' if key in texts else "true" if key in {"no-index", "pass-gpu"} else '["https://x"]'
    text = f"jobs = 2\n{key} = {value}\n"
    assert from_file(text, filename="s.toml", project=False).origins[key] == "s.toml:2"
    with pytest.raises(UsageError) as caught:
        from_file(text, filename="axletree.toml", project=True)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.key) == ("axletree.toml", 2, key)
    assert problem.message.startswith("this setting cannot be in a project's settings file")
    assert variable_of(key) in (problem.hint or "")


@pytest.mark.parametrize("out", ["/etc", "../x", "a/../../x", "~/x", "~"])
def test_a_project_writes_inside_its_own_folder_only(out: str) -> None:
    with pytest.raises(UsageError, match="not a folder inside the project"):
        from_file(f'out = "{out}"\n', filename="axletree.toml", project=True)
    assert from_file('out = "build/dist"\n', filename="axletree.toml", project=True).values == {"out": "build/dist"}


def test_a_projects_login_is_not_shown() -> None:
    with pytest.raises(UsageError) as caught:
        from_file('index-url = "https://me:secret@x"\n', filename="axletree.toml", project=True)
    assert "secret" not in str(caught.value)
