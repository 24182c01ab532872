"""C++ names as they stand in the source, from mangled ones: the Itanium C++ ABI, chapter 5.1 ("External Names").

Names come from files that nobody vouches for, so this is no call of the system's ``__cxa_demangle``: depth and length
are bounded here, and what is not read (expressions over template parameters, mostly) comes back as it is. What is read
looks as ``c++filt`` prints it.
"""

from __future__ import annotations

from axletree.binary.cpp.tables import BUILTINS, LITERALS, OPERATORS, SPECIALS, STANDARD, WORDS
from axletree.binary.cpp.types import (
    MAX_TEXT,
    Cursor,
    Name,
    Type,
    UnknownNameError,
    apply_arguments,
    declare,
    last_name,
    limit,
    map_pack,
    point,
    qualify,
)

_MAX_NAME = 8192


def demangle(name: str) -> str:
    """The name in the source's spelling, with parameter types; the name itself where it is no mangled one or not read.

    >>> demangle("_ZN3c104cuda9SetDeviceEab")
    'c10::cuda::SetDevice(signed char, bool)'
    """
    if not name.startswith("_Z") or len(name) > _MAX_NAME or not name.isascii():
        return name
    parser = _Parser(name)
    try:
        text = parser.encoding()
    except (UnknownNameError, IndexError):
        return name
    return text if parser.at == len(name) else name


class _Parser(Cursor):
    """A reader of one mangled name: the grammar."""

    def __init__(self, text: str) -> None:
        super().__init__(text, at=2)
        self._arguments: tuple[Type, ...] = ()
        self._parameters_at: dict[int, int] = {}
        self._lambdas = 0

    # Names

    def encoding(self, *, inner: bool = False, address: bool = False) -> str:
        """A function with its parameters, a variable, or one of the special names."""
        self.enter()
        for word, meaning in SPECIALS.items():
            if self.accept(word):
                text = self._special(word, meaning)
                self.depth -= 1
                return text
        outer, self._arguments = self._arguments, ()
        name = self._name()
        text = name.text
        if self.at < len(self.text) and self.peek() not in {"E", "."}:
            result = self._type() if name.templated and not name.plain else None
            parameters = self._parameters()
            if not address or name.templated:
                text = f"{text}({parameters}){name.suffix}"
            if result is not None and (address or not inner):
                text = declare(result, text)
            if address and name.templated:
                text = f"({text})"
        if inner:
            self._arguments = outer
        self.depth -= 1
        if len(text) > MAX_TEXT:
            raise UnknownNameError
        return text

    def _special(self, word: str, meaning: str) -> str:
        if word in {"TV", "TT", "TI", "TS"}:
            return meaning + self._type().text
        if word == "TC":
            derived = self._type().text
            self.number()
            self.expect("_")
            return f"{meaning}{self._type().text}-in-{derived}"
        if word in {"Th", "Tv"}:
            for _ in range(2 if word == "Tv" else 1):
                self.accept("n")
                self.number()
                self.expect("_")
            return meaning + self.encoding()
        if word == "GR":
            name = self._name().text
            return meaning.replace("#", f"#{self.sequence()}") + name
        return meaning + self._name().text

    def _parameters(self) -> str:
        """Parameter types up to the end, ``E``, or what may follow a function type."""
        types = [self._type()]
        while self.at < len(self.text) and self.peek() not in {"E", "."} and self.peek(2) not in {"RE", "OE"}:
            types.append(self._type())
            limit(*types)
        texts = [text for type_ in types if (text := type_.text)]
        return "" if texts == ["void"] else ", ".join(texts)

    def _name(self) -> Name:
        if self.peek() == "N":
            return self._nested()
        if self.accept("Z"):
            return self._local()
        if self.peek() == "S" and self.peek(2) != "St":
            base = self._substitution()
            return self._with_arguments(base.text, known=True)
        scope = "std::" if self.accept("St") else ""
        self.accept("L")
        text, plain = self._unqualified("")
        return self._with_arguments(scope + text, plain=plain)

    def _with_arguments(self, text: str, *, known: bool = False, plain: bool = False) -> Name:
        if self.peek() != "I":
            return Name(text, plain=plain)
        if not known:
            self.remember(Type(text))
        return Name(apply_arguments(text, self._template_arguments(keep=True)), templated=True, plain=plain)

    def _nested(self) -> Name:
        self.expect("N")
        suffix = self._qualifiers() + (" &" if self.accept("R") else " &&" if self.accept("O") else "")
        text, last, templated, plain, known = "", "", False, False, True
        while not self.accept("E"):
            if text and not known:
                self.remember(Type(text))
            known, peek = False, self.peek()
            if peek == "S" and self.peek(2) != "St":
                text, known = self._substitution().text, True
                last = last_name(text)
                templated = False
            elif self.accept("St"):
                text, known = "std", True
            elif peek == "T":
                text, known = self._template_parameter().text, True
                self.remember(Type(text))
            elif peek == "I" and text:
                text, templated = apply_arguments(text, self._template_arguments(keep=True)), True
            else:
                self.accept("L")
                last, plain = self._unqualified(last)
                self.accept("M")  # of a data member whose initialiser has what follows
                text, templated = (f"{text}::{last}" if text else last), False
        if not text:
            raise UnknownNameError
        return Name(text, templated, plain, suffix)

    def _local(self) -> Name:
        function = self.encoding(inner=True)
        self.expect("E")
        if self.accept("s"):
            self.discriminator()
            return Name(f"{function}::string literal")
        if self.accept("d"):
            function = f"{function}::{{default arg#{self._default_number()}}}"
        name = self._name()
        self.discriminator()
        return name._replace(text=f"{function}::{name.text}")

    def _default_number(self) -> int:
        return self.sequence(10) + 1

    def _unqualified(self, enclosing: str) -> tuple[str, bool]:
        """(name, whether it is a constructor, destructor or conversion)."""
        peek, plain, enclosing = self.peek(), False, enclosing.partition("[abi:")[0]
        if peek.isdecimal():
            text = self.source_name()
        elif peek == "C" and self.peek(2)[1:] in {"1", "2", "3", "4", "5"}:
            self.at += 2
            text, plain = enclosing, True
        elif peek == "D" and self.peek(2)[1:] in {"0", "1", "2", "4", "5"}:
            self.at += 2
            text, plain = f"~{enclosing}", True
        elif self.accept("Ut"):
            text = f"{{unnamed type#{self._default_number()}}}"
        elif self.accept("Ul"):
            self._lambdas += 1
            parameters = self._parameters()
            self._lambdas -= 1
            self.expect("E")
            text = f"{{lambda({parameters})#{self._default_number()}}}"
        elif self.accept("cv"):
            text, plain = f"operator {self._type().text}", True
        elif self.accept("li"):
            text = f'operator"" {self.source_name()}'
        else:
            word = OPERATORS.get(self.peek(2))
            if word is None:
                raise UnknownNameError
            self.at += 2
            text = f"operator {word}" if word[0].isalpha() else f"operator{word}"
        if not text:
            raise UnknownNameError
        while self.accept("B"):
            text += f"[abi:{self.source_name()}]"
        return text, plain

    def _substitution(self) -> Type:
        self.expect("S")
        standard = STANDARD.get(self.peek())
        if standard is not None:
            self.at += 1
            return Type(standard)
        number = self.sequence()
        if number >= len(self.known):
            raise UnknownNameError
        place = self._parameters_at.get(number)
        if place is None:
            return self.known[number]
        back, self.at = self.at, place
        found = self._template_parameter()
        self.at = back
        return found

    def _template_parameter(self) -> Type:
        self.expect("T")
        number = self.sequence()
        if self._lambdas:
            return Type(f"auto:{number + 1}")
        if number >= len(self._arguments):
            raise UnknownNameError
        return self._arguments[number]

    def _template_arguments(self, *, keep: bool = False) -> str:
        """``<...>``; those of the name itself are kept for what refers to them."""
        found = self._argument_list("I")
        if keep:
            self._arguments = found
        texts = [argument.text for argument in found]
        inner = ", ".join(filter(None, texts))
        return f"<{inner} >" if texts and texts[-1].endswith(">") else f"<{inner}>"

    def _argument_list(self, start: str) -> tuple[Type, ...]:
        self.expect(start)
        self.enter()
        outer = self._arguments
        found: list[Type] = []
        while not self.accept("E"):
            argument = self._argument()
            # No pack in a pack: what can't be nested can't grow exponentially.
            found += argument.parts if start == "J" and argument.kind == "pack" else [argument]
            self._arguments = outer
            limit(*found)
        self.depth -= 1
        return tuple(found)

    def _argument(self) -> Type:
        if self.peek() == "J":
            return Type("", kind="pack", parts=self._argument_list("J"))
        if self.peek() == "L":
            return Type(self._literal())
        if self.accept("X"):
            found = self._expression()
            self.expect("E")
            return found
        return self._type()

    def _expression(self) -> Type:
        """The two kinds that names of functions often have: a template parameter, and the address of a function."""
        if self.peek() == "T":
            return self._template_parameter()
        self.expect("ad")
        self.expect("L_Z")
        text = self.encoding(inner=True, address=True)
        self.expect("E")
        return Type(f"&{text}")

    def _literal(self) -> str:
        self.expect("L")
        if self.accept("_Z"):
            text = self.encoding(inner=True)
            self.expect("E")
            return text
        code = self.peek()
        type_ = self._type().text
        sign = "-" if self.accept("n") else ""
        end = self.text.find("E", self.at)
        value = self.text[self.at : end]
        if end < 0 or not (value.isdecimal() or (code == "D" and not value)):
            raise UnknownNameError
        self.at = end + 1
        if code == "b" and value in {"0", "1"}:
            return "true" if value == "1" else "false"
        if code in LITERALS:
            return f"{sign}{value}{LITERALS[code]}"
        return f"({type_}){sign}{value}"

    # Types

    def _type(self) -> Type:
        self.enter()
        found = self._read_type()
        self.depth -= 1
        return found

    def _read_type(self) -> Type:
        peek = self.peek()
        if peek in BUILTINS:
            self.at += 1
            return Type(BUILTINS[peek])
        if self.peek(2) in WORDS:
            self.at += 2
            return Type(WORDS[self.text[self.at - 2 : self.at]])
        if peek == "S" and self.peek(2) != "St":
            return self._applied(self._substitution())
        if peek == "T":
            return self._applied(self._parameter_type())
        if peek in {"N", "Z", "S"} or peek.isdecimal():
            return self.remember(Type(self._scoped()))
        return self.remember(self._composed(peek))

    def _composed(self, peek: str) -> Type:
        """A type that is made of others."""
        if peek in {"r", "V", "K"}:
            words = self._qualifiers()
            return map_pack(self._type(), lambda each: qualify(each, words))
        if peek in {"P", "R", "O"}:
            mark = {"P": "*", "R": "&", "O": "&&"}[peek]
            self.at += 1
            return map_pack(self._type(), lambda each: point(each, mark))
        if peek == "F" or self.peek(2) == "Do":
            return self._function()
        if self.accept("A"):
            return self._array()
        if self.accept("M"):
            return self._member_pointer()
        if self.accept("Dp"):
            return self._type()
        self.expect("u")
        return Type(self.source_name())

    def _parameter_type(self) -> Type:
        """A template parameter. Who refers back to it means the parameter, not what it stands for at this place."""
        start = self.at
        found = self._template_parameter()
        self._parameters_at[len(self.known)] = start
        return self.remember(found)

    def _scoped(self) -> str:
        outer = self._arguments
        text = self._name().text
        self._arguments = outer
        return text

    def _applied(self, template: Type) -> Type:
        if self.peek() != "I":
            return template
        return self.remember(Type(template.text + self._template_arguments()))

    def _qualifiers(self) -> str:
        names = {"r": " restrict", "V": " volatile", "K": " const"}
        found = ""
        while (peek := self.peek()) in names:
            found = names[peek] + found  # the innermost is printed first
            self.at += 1
        return found

    def _function(self) -> Type:
        noexcept = " noexcept" if self.accept("Do") else ""
        self.expect("F")
        self.accept("Y")
        result = self._type()
        parameters = self._parameters()
        suffix = " &" if self.accept("R") else " &&" if self.accept("O") else ""
        self.expect("E")
        right = f"({parameters}){suffix}{noexcept}{result.right}"
        return Type(f"{result.left} ", right, "function")

    def _array(self) -> Type:
        size = str(self.number()) if self.peek().isdecimal() else ""
        if self.peek() == "T":
            size = self._template_parameter().text
        self.expect("_")
        inner = self._type()
        if inner.kind == "array":
            return inner._replace(right=f" [{size}]{inner.right.lstrip()}")
        return Type(inner.left, f" [{size}]{inner.right}", "array")

    def _member_pointer(self) -> Type:
        owner = self._type().text
        inner = self._type()
        if inner.kind == "function":
            return Type(f"{inner.left}({owner}::*", f"){inner.right}")
        return Type(f"{inner.left} {owner}::*", inner.right)
