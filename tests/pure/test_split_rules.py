"""Rules files: all that is wrong with one, with lines; the rules that ship; who gets which file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from axletree.core.errors import IntegrityError, RecipeError
from axletree.core.globs import glob_fault
from axletree.package.split.assign import assign_files
from axletree.package.split.rules import FileRule, OutputPackage, SplitRules, parse_split_rules

SHIPPED = Path(__file__).parents[2] / "recipes" / "split"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in sorted(SHIPPED.glob("*.toml"))}

SMALL = """\
name = "demo"
label = "split.1"

[[package]]
name = "demo"
requires = ["libdemo"]

[[package]]
name = "libdemo"

[[rule]]
to = "libdemo"
files = ["demo/lib/**"]
place = { "demo/lib" = "libdemo/lib" }

[[rule]]
to = "demo"
files = ["**"]
"""


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_the_rules_that_ship_are_valid(name: str) -> None:
    rules = parse_split_rules(TEXTS[name], filename=name)
    assert rules.name == name.removesuffix(".toml")
    assert rules.main.name == rules.name


def test_every_fault_is_told_with_its_line() -> None:
    text = """\
name = "demo"
label = "split.01"
labels = "x"

[[package]]
summary = 3

[[rule]]
to = "demo"
files = "**"
required = "true"
"""
    with pytest.raises(RecipeError) as caught:
        parse_split_rules(text, filename="demo.toml")
    assert [(problem.line, problem.key) for problem in caught.value.problems] == [
        (2, "label"),
        (3, "labels"),
        (5, "package[0].name"),
        (6, "package[0].summary"),
        (10, "rule[0].files"),
        (11, "rule[0].required"),
    ]


FAULTS = [
    ('name = "demo"\nlabel', 'name = "other"\nlabel', "no package is called 'other'"),
    ('requires = ["libdemo"]', 'requires = ["libdemos"]', "'libdemos' is not a package"),
    ('requires = ["libdemo"]', 'requires = ["demo"]', "the package requires itself"),
    ('requires = ["libdemo"]', "independent = true", "cannot be meta or independent"),
    ('requires = ["libdemo"]', 'takes = ["numpy>=2"]', "is not a valid requirement pattern"),
    ('name = "libdemo"', 'name = "demo"', "two packages are called 'demo'"),
    ('name = "libdemo"', 'name = "lib--demo"', "is not a normalized name"),
    ('name = "libdemo"', 'name = "libdemo"\nmeta = true', "can contain files"),
    (
        'name = "libdemo"',
        'name = "libdemo"\nmeta = true\ntakes = ["x"]',
        "a meta package always requires all other packages, so it cannot set `requires` or `takes`",
    ),
    ('to = "demo"', "", "the rule needs either `to` or `drop`"),
    ('to = "demo"', 'to = "demo"\ndrop = "why"', "the rule needs either `to` or `drop`"),
    ('files = ["**"]', "", "the rule does not specify which files to take"),
    ('files = ["**"]', 'files = ["demo**"]', "'demo**' has '**' in 'demo**'"),
    ('files = ["**"]', 'files = ["**"]\nexclude = ["/x"]', "'/x' starts with '/'"),
    ('files = ["**"]', 'files = ["**"]\nwhen = "x["', "'x[' has an unclosed '['"),
    ("[[rule]]", '[[edit]]\nfile = "x.py"\nfind = "a"\nreplace = ""\nwhen = "x/"\n\n[[rule]]', "'x/' ends with '/'"),
    ('files = ["**"]', 'modules = ["a-b"]', "not a valid Python module name"),
    ('"libdemo/lib" }', '"/libdemo/lib" }', "must be relative folders"),
    ('"libdemo/lib" }', '"../lib" }', "must be relative folders"),
    ("[[rule]]", '[check]\nfile = "/x.py"\nmarkers = "m"\n\n[[rule]]', "not a relative path"),
    ("[[rule]]", '[[edit]]\nfile = "x.py"\nfind = ""\nreplace = ""\n\n[[rule]]', "the text to find is empty"),
    ("[[rule]]", '[[edit]]\nfile = "../x.py"\nfind = "a"\nreplace = ""\n\n[[rule]]', "not a relative path"),
    ("[[rule]]", '[[edit]]\nfile = "x.py"\nfind = "a"\nreplace = ""\ncount = 0\n\n[[rule]]', "at least 1"),
    ("[[rule]]", '[opens]\n"/liba.so" = ["libb.so"]\n\n[[rule]]', "neither a file name nor a relative path"),
    ("[[rule]]", '[opens]\n"liba.so" = ["lib/libb.so"]\n\n[[rule]]', "is not a library name"),
    ("[[rule]]", '[opens]\n"liba.so" = "libb.so"\n\n[[rule]]', 'write ["libb.so"]'),
]


@pytest.mark.parametrize(("old", "new", "message"), FAULTS)
def test_faults_of_meaning(old: str, new: str, message: str) -> None:
    parse_split_rules(SMALL, filename="demo.toml")
    with pytest.raises(RecipeError) as caught:
        parse_split_rules(SMALL.replace(old, new, 1), filename="demo.toml")
    assert message in str(caught.value)
    assert all(problem.line is not None for problem in caught.value.problems)


def rules(*given: FileRule) -> SplitRules:
    packages = tuple(
        OutputPackage(name=name) for name in ("demo", *sorted({rule.to for rule in given if rule.to} - {"demo"}))
    )
    return SplitRules(name="demo", label="split.1", package=packages, rule=given)


def assigned(
    paths: list[str], *given: FileRule, sonames: dict[str, str] | None = None
) -> dict[str, tuple[str | None, str]]:
    places = assign_files(paths, rules(*given), soname=(sonames or {}).get)
    assert [place.path for place in places] == paths
    return {place.path: (place.package, place.target) for place in places}


REST = FileRule(to="demo", files=("**",))


def test_the_first_rule_that_takes_a_file_decides() -> None:
    found = assigned(["a.so", "b.py"], FileRule(to="lib", files=("*.so",)), REST, FileRule(to="late", files=("b.py",)))
    assert found == {"a.so": ("lib", "a.so"), "b.py": ("demo", "b.py")}


def test_dropped_files_are_in_no_package() -> None:
    assert assigned(["t/x", "y"], FileRule(drop="tests", files=("t/**",)), REST)["t/x"][0] is None


def test_rules_count_only_when_a_file_is_there() -> None:
    rule = FileRule(to="gpu", files=("lib.so",), when="gpu.so")
    assert assigned(["lib.so"], rule, REST)["lib.so"][0] == "demo"
    assert assigned(["lib.so", "gpu.so"], rule, REST)["lib.so"][0] == "gpu"


def test_modules_by_their_dotted_name() -> None:
    paths = ["a/b/__init__.py", "a/b/c/d.txt", "a/b.py", "a/b.cpython-311-x86_64-linux-gnu.so", "a/bc.py", "a.py"]
    found = assigned(paths, FileRule(to="part", modules=("a.b",)), REST)
    assert [path for path in paths if found[path][0] == "part"] == paths[:4]


def test_libraries_by_soname_in_the_order_of_the_rules() -> None:
    sonames = {"x.so": "libx.so.1", "y.so": "liby.so.1", "z.so": "libx.so.2"}
    by_path = FileRule(to="first", files=("z.so",))
    by_soname = FileRule(to="part", soname=("libx.so.*",), exclude=("w/**",))
    found = assigned(["x.so", "y.so", "z.so", "n.py"], by_path, by_soname, REST, sonames=sonames)
    assert {path: package for path, (package, _) in found.items()} == {
        "x.so": "part", "y.so": "demo", "z.so": "first", "n.py": "demo"
    }  # fmt: skip
    assert assigned(["w/x.so"], by_soname, REST, sonames={"w/x.so": "libx.so.1"})["w/x.so"][0] == "demo"


def test_no_library_is_read_where_no_rule_goes_by_soname() -> None:
    def never(path: str) -> str | None:
        raise AssertionError(path)

    assign_files(["x.so"], rules(REST), soname=never)


def test_files_move_to_another_folder() -> None:
    rule = FileRule(to="lib", files=("a/**",), place={"a/b": "c", "a": "d/e"})
    assert assigned(["a/b/x", "a/bx", "a/y"], rule) == {
        "a/b/x": ("lib", "c/x"), "a/bx": ("lib", "d/e/bx"), "a/y": ("lib", "d/e/y")
    }  # fmt: skip


def test_every_gap_and_clash_is_told() -> None:
    place = {"a": "c", "b": "c"}
    given = (
        FileRule(to="one", files=("a/*",), place=place),
        FileRule(to="two", files=("b/*",), place=place),
        FileRule(to="two", files=("nowhere",), required=True),
        FileRule(to="two", files=("c",)),
    )
    with pytest.raises(IntegrityError) as caught:
        assign_files(["a/x", "b/x", "c", "left.py", "over.py"], rules(*given), soname=lambda _: None)
    assert [(problem.key, problem.message) for problem in caught.value.problems] == [
        (None, "no rule matches 2 files: left.py, over.py"),
        ("rule[2]", "the rule must match a file, but matches none: nowhere"),
        ("c/x", "the path is the destination of more than one file"),
        ("c", "the path is both a file and a folder in the parts"),
    ]


def test_dropped_files_clash_with_nothing() -> None:
    given = (FileRule(drop="old", files=("a/*",), place={"a": "b"}), REST)
    assert assigned(["a/x", "b/x"], *given)["b/x"] == ("demo", "b/x")


NAMES = st.sampled_from(["a", "b", "ab", "a.so", "b.h"])
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=3).map("/".join), unique=True, max_size=12)
PATTERNS = (
    st.lists(st.sampled_from(["*", "**", "**/", "?", "a", "b", ".so", "/", "*.h"]), min_size=1, max_size=4)
    .map("".join)
    .filter(lambda pattern: glob_fault(pattern) is None)
)
RULES = st.lists(
    st.builds(
        FileRule,
        to=st.sampled_from(["demo", "x", "y"]),
        files=st.lists(PATTERNS, min_size=1, max_size=2).map(tuple),
        exclude=st.lists(PATTERNS, max_size=2).map(tuple),
        place=st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["c", "a", "d/e"]), max_size=2),
    ),
    min_size=1,
    max_size=5,
)


@given(TREES, RULES)
def test_total_and_disjoint_or_an_error(paths: list[str], given_rules: list[FileRule]) -> None:
    try:
        places = assign_files(paths, rules(*given_rules), soname=lambda _: None)
    except IntegrityError as error:
        assert error.problems  # noqa: PT017
        return
    assert [place.path for place in places] == paths  # each file once, none lost
    targets = [place.target for place in places]
    assert len(targets) == len(set(targets))
    folders = {"/".join(target.split("/")[:end]) for target in targets for end in range(1, target.count("/") + 1)}
    assert not folders & set(targets)


@given(TREES, RULES)
def test_a_rule_that_is_reached_decides_whatever_follows(paths: list[str], given_rules: list[FileRule]) -> None:
    whole = rules(*given_rules, FileRule(to="rest", files=("**",)))
    alone = {}
    for path in paths:
        alone[path] = assign_files([path], whole, soname=lambda _: None)[0].rule
    try:
        together = assign_files(paths, whole, soname=lambda _: None)
    except IntegrityError:
        return
    assert {place.path: place.rule for place in together} == alone
