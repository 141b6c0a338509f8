"""The agent's records follow from Python's: types from bounds, names of choices, closed records, defaults."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Literal

import polars as pl
import pytest
from pydantic import Field

from plait.parts import U16, U32, U64, Address, Count, Micros, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[3]
Shape = Literal["flat", "fat_tree"]


class Sub(Record):
    """A record."""

    kind: Literal["sub_kind"] = "sub_kind"
    bounded: int = Field(ge=0, le=255)
    loop: str = "a"


class Other(Record):
    """Another record."""

    kind: Literal["other"] = "other"


Union = Annotated[Sub | Other, Field(discriminator="kind")]


@pytest.fixture
def contract(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import contract

    yield contract
    sys.modules.pop("contract", None)


def struct(contract: ModuleType, **fields: object) -> dict[str, str]:
    """Return the types of a record with these annotations, as Rust spells them."""
    module = ModuleType("records")
    vars(module).update(Shape=Shape, Sub=Sub, Other=Other, Union=Union)
    record = type("Made", (Record,), {"__doc__": "Made.", "__annotations__": fields, "__module__": __name__})
    lines = contract.Contract((module,)).struct(record).splitlines()
    return dict(line.strip(" ,").removeprefix("pub ").split(": ") for line in lines if "    pub " in line)


def test_bounds_decide_the_type_of_a_number(contract: ModuleType) -> None:
    types = struct(contract, a=U16, b=U32, c=U64, d=Count, e=Micros, f=int, g=float, h=bool)
    assert list(types.values()) == ["u16", "u32", "u64", "u64", "i64", "i64", "f64", "bool"]
    below = struct(contract, a=Annotated[int, Field(gt=0, lt=256)], b=Annotated[int, Field(ge=-5, le=5)])
    assert list(below.values()) == ["u8", "i16"]


def test_texts_sequences_and_records_have_counterparts(contract: ModuleType) -> None:
    texts = struct(contract, a=Address, b=str | None, c=Shape | None)
    assert list(texts.values()) == ["std::net::IpAddr", "Option<String>", "Option<Shape>"]
    types = struct(contract, c=tuple[Sub, ...], d=tuple[Sub, Sub], e=tuple[str, U16], f=Union)
    assert list(types.values()) == ["Vec<Sub>", "[Sub; 2]", "(String, u16)", "Union"]


def test_what_has_no_counterpart_is_refused_with_its_place(contract: ModuleType) -> None:
    with pytest.raises(contract.ContractError, match=r"Made\.a.*no counterpart in Rust"):
        struct(contract, a=dict[str, str])
    with pytest.raises(contract.ContractError, match=r"Made\.a.*name it"):
        struct(contract, a=Literal["without", "name"])


def test_records_are_closed_and_unions_are_told_apart_by_their_kind(contract: ModuleType) -> None:
    module = ModuleType("records")
    vars(module).update(Shape=Shape, Sub=Sub, Other=Other, Union=Union)
    rust = contract.Contract((module,)).rust()
    assert rust.count("deny_unknown_fields") == 2
    assert '#[serde(rename = "sub_kind")]\n    Sub(Sub),' in rust
    assert '#[serde(rename = "fat_tree")]\n    FatTree,' in rust
    assert "pub kind" not in rust  # the enum around the record holds it
    assert 'fn default_sub_loop() -> String { "a".to_owned() }' in rust
    assert "    pub r#loop: String," in rust


def test_every_table_has_a_row_with_its_columns(contract: ModuleType) -> None:
    from plait.dataset.model import ALL_TABLES

    rows = contract.rows()
    assert rows.count("row! {") == len(ALL_TABLES)
    assert all(f'= "{name}" {{' in rows for name in ALL_TABLES)
    assert 'CounterSeries = "counter_series"' in rows
    assert 'QueueingDelay = "queueing_delays"' in rows
    assert rows.count(": i64,") == sum(
        kind == pl.Int64 for schema in ALL_TABLES.values() for kind in schema.values()
    )


@pytest.mark.parametrize("builder", ["Makefile", "agent/build.rs"])
def test_a_change_of_a_module_of_the_contract_builds_the_agent_again(
    contract: ModuleType, builder: str
) -> None:
    text = (ROOT / builder).read_text(encoding="utf-8")
    sources = {Path(str(module.__file__)).relative_to(ROOT) for module in contract.MODULES}
    assert len(sources) > 10
    missing = [
        str(source) for source in sources if str(source.parent) not in text and str(source) not in text
    ]
    assert missing == []
