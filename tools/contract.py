"""Writes the Rust side of the two contracts, which the build of the agent includes (`agent/build.rs`).

    python tools/contract.py FOLDER

`FOLDER/plan.rs` gets a struct for each record of the plan, an enum for each choice of words and union of kinds, and
`FOLDER/tables.rs` a row for each table. The Python side is the only source: names, types, defaults, closed records.

An integer becomes the narrowest type that its bounds allow (`plait.parts`): 0 to 255 are a `u8`, those
below 2^53, which JSON holds exactly, a `u64`, and those without an upper bound an `i64`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import polars as pl
from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from plait.dataset.model import ALL_TABLES
from plait.parts import Attribute, Record
from plait.plan.model import forwarding, links, monitors, mptcp, plan, programs, qdiscs, sockets
from plait.traffic import gaps, kinds, prototype, request, transfer

MODULES = (
    *(forwarding, links, monitors, mptcp, plan, programs, qdiscs, sockets),
    *(gaps, kinds, prototype, request, transfer),
)
KEYWORDS = {"loop", "type", "match", "use"}
BEHAVIOUR = {"Application": ("job", "crate::traffic::Kind")}
"""The method of a union that returns a member as a trait."""
CELLS = {pl.Int64: "i64", pl.String: "Text", pl.Boolean: "bool"}
WORDS = "#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]"
STRUCT = "#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]"


class ContractError(Exception):
    """A record has something that this program cannot express in Rust."""


def camel(words: str) -> str:
    """Return `on_off` as `OnOff`."""
    return "".join(part.capitalize() for part in words.split("_"))


def identifier(name: str) -> str:
    """Return a name of a field as Rust spells it."""
    return f"r#{name}" if name in KEYWORDS else name


class Contract:
    """The records of some modules, and the names of their choices and unions."""

    def __init__(self, modules: tuple[ModuleType, ...]) -> None:
        self.records: dict[str, type[Record]] = {}
        self.choices: dict[str, Any] = {}
        self.unions: dict[str, Any] = {}
        for name, value in (item for module in modules for item in vars(module).items()):
            if isinstance(value, type) and issubclass(value, Record) and value.model_fields:
                self.records[name] = value
            elif get_origin(value) is Literal:
                self.choices[name] = value
            elif get_origin(value) is Annotated and get_origin(get_args(value)[0]) in {Union, UnionType}:
                self.unions[name] = value
        self.members = {member for union in self.unions.values() for member in get_args(get_args(union)[0])}

    def rust(self) -> str:
        """Return all items as Rust."""
        items = [
            *(self.choice(name, value) for name, value in self.choices.items()),
            *(self.union(name, get_args(get_args(value)[0])) for name, value in self.unions.items()),
            *(self.struct(record) for record in self.records.values()),
        ]
        return "\n".join(items)

    def choice(self, name: str, choice: object) -> str:
        """Return the enum of a choice of words."""
        return enum(name, dict.fromkeys(get_args(choice), ""), WORDS, "self")

    def union(self, name: str, members: tuple[type[Record], ...]) -> str:
        """Return the enum of a union of records, which their `kind` distinguishes."""
        kinds = {member.model_fields["kind"].default: member.__name__ for member in members}
        text = enum(name, kinds, f'{STRUCT}\n#[serde(tag = "kind")]', "&self")
        if name not in BEHAVIOUR:
            return text
        method, behaviour = BEHAVIOUR[name]
        arms = [f"            Self::{member}(job) => job," for member in kinds.values()]
        return "\n".join(
            [
                f"{text}impl {name} {{",
                f"    /// Return what [`{behaviour}`] has of each kind.",
                f"    pub fn {method}(&self) -> &dyn {behaviour} {{",
                "        match self {",
                *arms,
                "        }\n    }\n}\n",
            ]
        )

    def struct(self, record: type[Record]) -> str:
        """Return the struct of a record, and the functions of its defaults."""
        hints = get_type_hints(record, include_extras=True)
        fields = {
            field.alias or name: (field, hints[name])
            for name, field in record.model_fields.items()
            if not (record in self.members and name == "kind")
        }
        lines = [f"/// {(record.__doc__ or '').splitlines()[0]}", STRUCT, "#[serde(deny_unknown_fields)]"]
        lines.append(f"pub struct {record.__name__} {{")
        defaults = []
        for name, (field, hint) in fields.items():
            kind = self.type(hint, f"{record.__name__}.{name}", field)
            if not field.is_required():
                function = f"default_{record.__name__.lower()}_{name}"
                lines.append(f'    #[serde(default = "{function}")]')
                value = self.value(field.get_default(call_default_factory=True), hint)
                defaults.append(f"fn {function}() -> {kind} {{ {value} }}")
            lines.append(f"    pub {identifier(name)}: {kind},")
        return "\n".join([*lines, "}", *defaults, *attributes(record), ""])

    def type(self, hint: Any, place: str, field: FieldInfo | None = None) -> str:
        """Return the Rust type of an annotation; `field` has what bounds the value beside it."""
        bounds: list[Any] = list(field.metadata) if field else []
        while get_origin(hint) is Annotated:
            if (name := self.name_of(self.unions, hint)) is not None:
                return name
            hint, *extra = get_args(hint)
            bounds += [part for one in extra for part in getattr(one, "metadata", [one])]
        if (name := self.name_of(self.choices, hint)) is not None:
            return name
        arguments = get_args(hint)
        if get_origin(hint) in {Union, UnionType} and len(arguments) == 2 and arguments[1] is NoneType:
            return f"Option<{self.type(arguments[0], place, field)}>"
        if get_origin(hint) is tuple:
            return self.sequence(arguments, place)
        if isinstance(hint, type) and issubclass(hint, Record):
            return hint.__name__
        if get_origin(hint) is Literal and all(isinstance(word, int) for word in arguments):
            return "u32"
        if hint is str:
            return (
                "std::net::IpAddr" if any(isinstance(part, WithJsonSchema) for part in bounds) else "String"
            )
        if hint in (bool, float):
            return "bool" if hint is bool else "f64"
        if hint is int:
            return integer(bounds)
        raise ContractError(
            f"{place}: {hint} has no counterpart in Rust; name it, or extend tools/contract.py"
        )

    def sequence(self, arguments: tuple[Any, ...], place: str) -> str:
        """Return the Rust type of a tuple: a vector, an array of records or a tuple."""
        kinds = [self.type(argument, place) for argument in arguments if argument is not ...]
        if arguments[-1] is ...:
            return f"Vec<{kinds[0]}>"
        if kinds[0] in self.records:
            return f"[{kinds[0]}; {len(kinds)}]"
        return f"({', '.join(kinds)})"

    def value(self, value: object, hint: Any) -> str:
        """Return a default as Rust."""
        if isinstance(value, Record):
            hints = get_type_hints(type(value), include_extras=True)
            fields = {name: self.value(item, hints[name]) for name, item in value}
            inner = ", ".join(f"{identifier(name)}: {text}" for name, text in fields.items())
            return f"{type(value).__name__} {{ {inner} }}"
        if value is None or value == ():
            return "None" if value is None else "Vec::new()"
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            name = self.name_of(self.choices, hint)
            return f'"{value}".to_owned()' if name is None else f"{name}::{camel(value)}"
        if isinstance(value, float | int):
            return repr(value)
        raise ContractError(f"a default of {hint} is {value!r}, which has no counterpart in Rust")

    @staticmethod
    def name_of(known: dict[str, Any], hint: object) -> str | None:
        """Return the name of a choice or a union."""
        return next((name for name, value in known.items() if value == hint), None)


def attributes(record: type[Record]) -> Iterator[str]:
    """Yield the method that returns the ratios of a record that are attributes of netlink."""
    numbers = [
        f"({part.number}, self.{name}.into())"
        for name, field in record.model_fields.items()
        for part in field.metadata
        if isinstance(part, Attribute)
    ]
    if numbers:
        yield f"impl {record.__name__} {{"
        yield "    /// Return the ratios that are attributes of netlink, by the numbers of these."
        yield "    pub fn ratios(&self) -> impl Iterator<Item = (u16, f64)> {"
        yield f"        let ratios: [(u16, Option<f64>); {len(numbers)}] = [{', '.join(numbers)}];"
        yield "        ratios.into_iter().filter_map(|(number, ratio)| Some((number, ratio?)))"
        yield "    }"
        yield "}"


def enum(name: str, kinds: dict[str, str], derive: str, receiver: str) -> str:
    """Return an enum with a variant for each word, and its method `name`."""
    variants = {word: content or camel(word) for word, content in kinds.items()}
    lines = [f"/// One of {', '.join(kinds)}.", derive, f"pub enum {name} {{"]
    for word, variant in variants.items():
        lines.append(f'    #[serde(rename = "{word}")]')
        lines.append(f"    {variant}({variant})," if kinds[word] else f"    {variant},")
    lines += ["}", f"impl {name} {{", "    /// Return the name in the plan and in the tables."]
    lines += [f"    pub fn name({receiver}) -> &'static str {{", "        match self {"]
    for word, variant in variants.items():
        pattern = f"{variant}(_)" if kinds[word] else variant
        lines.append(f'            Self::{pattern} => "{word}",')
    return "\n".join([*lines, "        }", "    }", "}", ""])


def integer(bounds: list[Any]) -> str:
    """Return the narrowest type for a number within these bounds."""
    lowest = max((int(low) for low in limits(bounds, "ge", "gt", 1)), default=None)
    highest = min((int(high) for high in limits(bounds, "le", "lt", -1)), default=None)
    if lowest is None or highest is None:
        return "i64"
    if lowest < 0:
        return "i16" if lowest >= -(2**15) and highest < 2**15 else "i64"
    return next(f"u{bits}" for bits in (8, 16, 32, 64) if highest < 2**bits)


def limits(bounds: list[Any], closed: str, strict: str, step: int) -> Iterator[int]:
    """Yield the given bounds of one side as numbers that still belong to the type."""
    for bound in bounds:
        if getattr(bound, closed, None) is not None:
            yield getattr(bound, closed)
        if getattr(bound, strict, None) is not None:
            yield getattr(bound, strict) + step


def rows() -> str:
    """Return a row for each table: `flows` is made of `Flow`."""
    items = []
    for name, schema in ALL_TABLES.items():
        row = camel(name if name.endswith("series") else name.removesuffix("s"))
        columns = "".join(f"    {identifier(column)}: {CELLS[type(kind) if not isinstance(kind, type) else kind]},\n"
                          for column, kind in schema.items())  # fmt: skip
        items.append(f'row! {{\n/// A row of the table `{name}`.\n{row} = "{name}" {{\n{columns}}}\n}}\n')
    return "\n".join(items)


def main(folder: Path) -> None:
    """Write both files."""
    (folder / "plan.rs").write_text(Contract(MODULES).rust(), encoding="utf-8")
    (folder / "tables.rs").write_text(rows(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
