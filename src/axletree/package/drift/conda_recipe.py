"""Requirements of a conda recipe, ``meta.yaml`` or ``recipe.yaml``, of the plain kind.

Nothing is rendered: variables that are set to a text are filled in, selectors become conditions, and a line whose
package needs more (``{{ compiler('c') }}``, ``pin_subpackage``) is passed over. What was passed over is told.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from axletree.package.drift.evidence import Evidence, Phase
from axletree.package.drift.names import look_up
from axletree.package.drift.recipe import of_conda_text
from axletree.package.drift.requirements import RequirementOrigin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from axletree.package.drift.names import DependencyTable

_SET = re.compile(r"""^\s*+\{%-?\s*+set\s++(\w+)\s*+=\s*+["']?([^"'%{}()|\[\]]+?)["']?\s*+-?%\}""")
_CONTEXT = re.compile(r"""^\s{1,8}(\w+):\s*+["']?([^"'{}\[\]#]+?)["']?\s*+(?:#.*)?$""")
_KEY = re.compile(r"^(?P<indent>\s*)(?:- )?(?P<key>[\w-]+)\s*:(?P<rest>.*)$")
_ITEM = re.compile(r"^(?P<indent>\s*)-\s+(?P<text>.+?)\s*$")
_SELECTOR = re.compile(r"\s+#\s*\[(?P<selector>.+)\]\s*$")
_COMMENT = re.compile(r"\s+#.*$")
_REFERENCE = re.compile(r"\$?\{\{\s*(\w+)\s*(?:\|\s*string\s*)?\}\}")
_IF = re.compile(r"^\s*+\{%-?\s*+(if|elif|else|endif)\s*+(.*?)\s*+-?%\}")
_SECTIONS: dict[str, Phase] = {
    "build": "build",
    "host": "build",
    "run": "run",
    "run_constrained": "run",
    "run_constraints": "run",
}
_LONGEST = 1000
_NOT_LINUX = re.compile(r"^(?:win|osx|not linux|not unix|win and .*|osx and .*|ppc64le|aarch64|arm64)$")


class CondaRecipe(msgspec.Struct, frozen=True, kw_only=True):
    """What could be read of a conda recipe."""

    name: str
    version: str
    """Empty where it could not be read."""
    evidence: tuple[Evidence, ...]
    passed_over: tuple[str, ...]
    """``line: text`` of requirements that need rendering."""


class _Reader:
    def __init__(self, text: str, file: str, table: DependencyTable) -> None:
        self.lines = [line[:_LONGEST] for line in text.splitlines()]
        self.file, self.table = file, table
        self.variables = _variables(self.lines)
        self.conditions: list[str] = []
        self.evidence: list[Evidence] = []
        self.passed_over: list[str] = []
        self.made: set[str] = set()

    def read(self) -> None:
        """Walk over the requirements sections of the recipe and its outputs."""
        path: list[tuple[int, str]] = []
        pending: tuple[int, str, str] | None = None  # recipe.yaml: `- if: CONDITION`, and the branch that is read
        for number, line in enumerate(self.lines, start=1):
            if (jinja := _IF.match(line)) is not None:
                self.branch(jinja[1], jinja[2])
                continue
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            indent = len(line) - len(line.lstrip())
            if pending is not None and indent <= pending[0]:
                pending = None
            item, key = _ITEM.match(line), _KEY.match(line)
            if item is not None and (condition := re.fullmatch(r"if:\s*(.+)", item["text"])):
                pending = (indent, condition[1], condition[1])
                continue
            if pending is not None and key is not None and key["key"] in {"then", "else"}:
                text = key["rest"].strip()
                wanted = pending[1] if key["key"] == "then" else f"not ({pending[1]})"
                pending = (pending[0], pending[1], wanted)
                if text and not text.startswith("["):
                    self.requirement(text, path, number, wanted)
                continue
            if key is not None and (item is None or _is_mapping(item["text"])):
                path = [(at, name) for at, name in path if at < indent]
                path.append((indent, key["key"]))
                if key["key"] == "name" and {"package", "outputs"} & {name for _, name in path}:
                    self.made.add(look_up(self.table, "conda", key["rest"].strip().strip("'\"")))
            elif item is not None:
                self.requirement(item["text"], path, number, "" if pending is None else pending[2])

    def branch(self, word: str, condition: str) -> None:
        """Follow Jinja's conditions; what stands in one is for some variants only."""
        if word == "if":
            self.conditions.append(condition)
        elif word == "endif":
            self.conditions[-1:] = []
        elif self.conditions:
            self.conditions[-1] = condition or f"not ({self.conditions[-1]})"

    def requirement(self, text: str, path: list[tuple[int, str]], number: int, condition: str) -> None:
        """Take an item of a list that is one of requirements."""
        names = [name for _, name in path]
        if "requirements" not in names or names[-1] not in _SECTIONS or "test" in names or "tests" in names:
            return
        selector = _SELECTOR.search(text)
        wanted = [selector["selector"].strip()] if selector is not None else []
        wanted += [each for each in (condition, *self.conditions) if each]
        if any(_NOT_LINUX.fullmatch(each) for each in wanted):
            return
        plain = _COMMENT.sub("", _SELECTOR.sub("", text)).strip().strip("'\"")
        filled = _REFERENCE.sub(lambda match: self.variables.get(match[1], match[0]), plain)
        name, _, rest = filled.partition(" ")
        if "{" in name:
            self.passed_over.append(f"{number}: {plain}")
            return
        open_version = "{" in rest.split()[0] if rest.split() else False
        origin = RequirementOrigin(
            column="recipe",
            role="asks",
            file=self.file,
            phase=_SECTIONS[names[-1]],
            gpus=_gpus(wanted),
            when="; ".join([names[-1], *wanted]),
        )
        found = of_conda_text(name if open_version else filled, origin, table=self.table, line=number)
        if found is not None:
            kept = msgspec.structs.replace(found, confidence="likely", text=plain)
            unknown = {"spec": rest.strip(), "range": None, "note": "its version is a template"}
            self.evidence.append(msgspec.structs.replace(kept, **unknown) if open_version else kept)


def read_conda_recipe(text: str, *, file: str, table: DependencyTable) -> CondaRecipe:
    """The requirements of a conda recipe for Linux, each with its section and selector."""
    reader = _Reader(text, file, table)
    reader.read()
    unique: dict[tuple[str, str, str], Evidence] = {}
    for each in (each for each in reader.evidence if each.dependency not in reader.made):
        unique.setdefault((each.dependency, each.text, each.when), each)
    return CondaRecipe(
        name=reader.variables.get("name", ""),
        version=_version(reader),
        evidence=tuple(unique.values()),
        passed_over=tuple(reader.passed_over),
    )


def _is_mapping(text: str) -> bool:
    return re.match(r"[\w-]+:(?:\s|$)", text) is not None


def _variables(lines: list[str]) -> dict[str, str]:
    """``{% set name = "text" %}``, and the table ``context`` of a recipe.yaml; the first of each name counts."""
    found: dict[str, str] = {}
    inside = False
    for line in lines:
        if (assigned := _SET.match(line)) is not None:
            found.setdefault(assigned[1], assigned[2])
        if re.match(r"\S", line):
            inside = line.startswith("context:")
        elif inside and (value := _CONTEXT.match(line)) is not None:
            found.setdefault(value[1], value[2].strip())
    return found


def _version(reader: _Reader) -> str:
    if "version" in reader.variables:
        return reader.variables["version"]
    for line in reader.lines:
        found = re.match(r"""^\s{1,8}version:\s*["']?(\d[\w.]*)["']?\s*$""", line)
        if found is not None:
            return found[1]
    return ""


def _gpus(conditions: list[str]) -> tuple[str, ...]:
    """The GPU worlds that selectors of conda-forge's variants name."""
    return tuple(dict.fromkeys(gpu for condition in conditions for gpu in _worlds(condition)))


def _worlds(condition: str) -> Iterator[str]:
    if condition.startswith("not ("):
        return
    for sign, version in re.findall(r"""cuda_compiler_version\s*([!=]=)\s*["'](None|\d+\.\d+)["']""", condition):
        if version == "None":
            yield "cpu" if sign == "==" else "cu"
        elif sign == "==":
            yield f"cu{version.replace('.', '')}"
