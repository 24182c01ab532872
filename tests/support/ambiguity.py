"""Whether Python's engine can take more than linear time for an expression: found in its automaton, not by a clock.

A word that an expression can read along two paths, both of which come back to where they began, is tried along each of
them: twice for one repetition of the word, 2**n times for n ("exponential"). Two loops one behind the other that read
the same word share n repetitions in n ways ("polynomial"); the loop that a search makes over the starting points counts
as one. What follows is taken to fail, except where the match is already complete.
"""

from __future__ import annotations

import re
from collections import deque
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

ALL = (1 << 129) - 1
"""A set of characters: a bit for each of ASCII, one for all others."""
OTHER = 1 << 128
MOST = 60_000
"""Steps of a search through an automaton; beyond them nothing is claimed."""

_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d", op.CATEGORY_NOT_DIGIT: r"\D", op.CATEGORY_SPACE: r"\s", op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w", op.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip


def verdict(pattern: str | bytes, flags: int = 0, *, search: bool = True) -> str:
    """``linear``, ``polynomial``, ``exponential``, or ``unknown`` where the automaton is too big to tell."""
    if isinstance(pattern, bytes):
        pattern = pattern.decode("latin-1")
    tree = parser.parse(pattern, flags & ~re.UNICODE)
    items = _once_at_the_end(list(tree))
    machine = _Machine(tree.state.flags | flags)
    end = machine.sequence(items, machine.start)
    machine.done.add(end)
    if search and not _anchored(items, tree.state.flags | flags):
        machine.restart(lines=_first(items) == op.AT_BEGINNING)
    return machine.verdict()


def _once_at_the_end(items: list[Any]) -> list[Any]:
    """An expression that is complete after each round of its last loop goes through that loop without going back."""
    if items and items[-1][0] in (op.MAX_REPEAT, op.POSSESSIVE_REPEAT) and items[-1][1][1] is op.MAXREPEAT:
        code, (low, _, body) = items[-1]
        return [*items[:-1], (code, (low, max(low, 1), body))]
    return items


def _first(items: list[Any]) -> Any:
    for code, argument in items:
        if code is op.AT:
            return argument
        if code is op.SUBPATTERN:
            return _first(list(argument[3]))
        break
    return None


def _anchored(items: list[Any], flags: int) -> bool:
    return _first(items) is op.AT_BEGINNING_STRING or (_first(items) is op.AT_BEGINNING and not flags & re.MULTILINE)


class _Machine:
    """An automaton with empty moves; ``_eps`` may hold one move several times."""

    def __init__(self, flags: int) -> None:
        self.flags = flags
        self.eps: list[list[int]] = []
        self.reads: list[list[tuple[int, int]]] = []
        self.done: set[int] = set()
        self.start = self.state()

    def state(self) -> int:
        self.eps.append([])
        self.reads.append([])
        return len(self.eps) - 1

    def restart(self, *, lines: bool) -> None:
        loop = self.state()
        self.reads[loop].append((ALL, loop))
        if lines:
            self.reads[loop].append((1 << 10, self.start))
        else:
            self.eps[loop].append(self.start)
        self.begin = loop

    def sequence(self, items: list[Any], at: int) -> int:
        for code, argument in items:
            at = self.item(code, argument, at)
        return at

    def item(self, code: Any, argument: Any, at: int) -> int:
        if code in (op.LITERAL, op.NOT_LITERAL, op.IN, op.ANY):
            end = self.state()
            self.reads[at].append((self.characters(code, argument), end))
            return end
        if code is op.SUBPATTERN:
            return self.sequence(list(argument[3]), at)
        if code is op.ATOMIC_GROUP:
            return self.sequence(list(argument), at)
        if code is op.BRANCH:
            end = self.state()
            for branch in argument[1]:
                last = self.sequence(list(branch), at)
                self.eps[last].append(end)
            return end
        if code in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self.repeat(argument, at)
        if code is op.AT and argument in (op.AT_END, op.AT_END_STRING):
            end = self.state()
            self.reads[at].append((0, end))  # what comes next decides: nothing is complete before
            return end
        if code is op.GROUPREF:
            end = self.state()
            self.reads[at].append((ALL, end))
            self.reads[end].append((ALL, end))
            return end
        return at  # looks around, boundaries: taken to hold

    def repeat(self, argument: Any, at: int) -> int:
        low, high, body = argument
        for _ in range(min(low, 3)):
            at = self.sequence(list(body), at)
        if high is op.MAXREPEAT:
            begin, end = self.state(), self.state()
            self.eps[at] += [begin, end]
            last = self.sequence(list(body), begin)
            self.eps[last] += [begin, end]
            return end
        end = self.state()
        self.eps[at].append(end)
        for _ in range(min(high - low, 2)):
            at = self.sequence(list(body), at)
            self.eps[at].append(end)
        return end

    def characters(self, code: Any, argument: Any) -> int:
        if code is op.ANY:
            return ALL if self.flags & re.DOTALL else ALL & ~(1 << 10)
        if code is op.LITERAL:
            return self.one(argument)
        if code is op.NOT_LITERAL:
            return ALL & ~self.one(argument) | OTHER
        mask, negated = 0, False
        for kind, value in argument:
            if kind is op.NEGATE:
                negated = True
            elif kind is op.LITERAL:
                mask |= self.one(value)
            elif kind is op.RANGE:
                low, high = value
                for number in range(low, min(high, 127) + 1):
                    mask |= self.one(number)
                mask |= OTHER if high > 127 else 0
            elif kind is op.CATEGORY:
                wanted = re.compile(_CATEGORIES[value])
                mask |= sum(1 << number for number in range(128) if wanted.match(chr(number)))
                mask |= OTHER if value in (op.CATEGORY_WORD, op.CATEGORY_NOT_SPACE, op.CATEGORY_NOT_DIGIT) else 0
        return (ALL & ~mask) | OTHER if negated else mask

    def one(self, number: int) -> int:
        if number > 127:
            return OTHER
        if self.flags & re.IGNORECASE:
            return 1 << ord(chr(number).lower()) | 1 << ord(chr(number).upper())
        return 1 << number

    def verdict(self) -> str:
        moves, complete = self.moves()
        inside = _in_loops(moves)
        if any(_twice(moves, each, complete) for each in inside):
            return "exponential"
        steps = [0]
        for first in sorted(inside):
            for second in sorted(inside):
                if first != second and second not in complete and _shared(moves, first, second, steps):
                    return "polynomial"
        return "unknown" if steps[0] > MOST * 20 else "linear"

    def moves(self) -> tuple[dict[int, list[tuple[int, int, int]]], set[int]]:
        """From each state that reads: characters, next such state, how many ways; and states that may stop at once."""
        reading = [state for state in range(len(self.eps)) if self.reads[state]]
        ways = {
            state: self.ways(state)
            for state in {end for state in reading for _, end in self.reads[state]} | set(reading)
        }
        moves: dict[int, list[tuple[int, int, int]]] = {}
        for state in reading:
            for mask, end in self.reads[state]:
                for target, count in ways[end].items():
                    if self.reads[target]:
                        moves.setdefault(state, []).append((mask, target, count))
        complete = {state for state in reading if self.done & set(self.before(state))}
        return moves, complete

    def before(self, state: int) -> set[int]:
        """What can be reached from where a state is reached, without reading: the state's siblings."""
        origins = {state}
        changed = True
        while changed:
            changed = False
            for other, nexts in enumerate(self.eps):
                if other not in origins and origins & set(nexts) and len(origins) < 50:
                    origins.add(other)
                    changed = True
        found: set[int] = set()
        for origin in origins:
            found |= set(self.ways(origin))
        return found

    def ways(self, state: int) -> dict[int, int]:
        found: dict[int, int] = {state: 1}
        todo = deque([(state, frozenset([state]))])
        steps = 0
        while todo and steps < 2000:
            at, path = todo.popleft()
            steps += 1
            for other in self.eps[at]:
                if other not in path:
                    found[other] = found.get(other, 0) + 1
                    todo.append((other, path | {other}))
        return found


Moves = dict[int, list[tuple[int, int, int]]]


def _in_loops(moves: Moves) -> set[int]:
    return {state for state in moves if state in _reachable(moves, state)}


def _reachable(moves: Moves, state: int) -> set[int]:
    found: set[int] = set()
    todo = [state]
    while todo:
        for _, target, _ in moves.get(todo.pop(), ()):
            if target not in found:
                found.add(target)
                todo.append(target)
    return found


def _twice(moves: Moves, state: int, complete: set[int]) -> bool:
    """Whether one word leads from a state back to it along two paths."""
    if state in complete:
        return False
    seen = {(state, state, False)}
    todo = deque(seen)
    while todo and len(seen) < MOST:
        one, two, apart = todo.popleft()
        for mask, first, ways in moves.get(one, ()):
            for other, second, others in moves.get(two, ()):
                if not mask & other:
                    continue
                now = apart or first != second or (ways > 1 and others > 1)
                if now and first == second == state:
                    return True
                if (first, second, now) not in seen:
                    seen.add((first, second, now))
                    todo.append((first, second, now))
    return False


def _shared(moves: Moves, one: int, two: int, steps: list[int]) -> bool:
    """Whether one word leads from a state to it, from there to a second, and from the second to it."""
    seen = {(one, one, two)}
    todo = deque(seen)
    while todo and len(seen) < MOST and steps[0] < MOST * 20:
        first, middle, last = todo.popleft()
        for mask, a, _ in moves.get(first, ()):
            for second, b, _ in moves.get(middle, ()):
                both = mask & second
                if not both:
                    continue
                for third, c, _ in moves.get(last, ()):
                    if not both & third:
                        continue
                    steps[0] += 1
                    if (a, b, c) == (one, two, two):
                        return True
                    if (a, b, c) not in seen:
                        seen.add((a, b, c))
                        todo.append((a, b, c))
    return False
