"""The dataset keeps its promises: checked conversion, errors that name file and column, digests of content alone."""

from __future__ import annotations

import io
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_plans import fake_plan
from fake_tables import fake_tables, make_tables
from plait.dataset.arrow_stream import ForeignStreamError, check_stream
from plait.dataset.convert import convert
from plait.dataset.digest import study_digest, trial_digest
from plait.dataset.files import read_table
from plait.dataset.model import ALL_TABLES, TABLES
from plait.dataset.provenance import Provenance
from plait.dataset.trial import read_trial
from plait.errors import DataError
from plait.files import Folder
from result_folders import write_arrow, write_trial

if TYPE_CHECKING:
    from pathlib import Path

PLAN = fake_plan()
DATA = fake_tables(PLAN)


@pytest.fixture
def arrow(tmp_path: Path) -> Path:
    write_arrow(tmp_path / "data", DATA)
    return tmp_path / "data"


def test_conversion_keeps_every_cell(arrow: Path, tmp_path: Path) -> None:
    returned = convert(arrow, tmp_path / "out")
    for name, frame in DATA.items():
        assert pl.read_parquet(tmp_path / "out" / f"{name}.parquet").equals(frame)
        assert returned[name].equals(frame)


def test_a_table_without_rows_converts(tmp_path: Path) -> None:
    write_arrow(tmp_path / "data", make_tables({}))
    assert all(frame.is_empty() for frame in convert(tmp_path / "data", tmp_path / "out").values())


def test_a_missing_table_is_named(arrow: Path, tmp_path: Path) -> None:
    (arrow / "links.arrow").unlink()
    with pytest.raises(DataError, match=r"links\.arrow: the table `links` is missing"):
        convert(arrow, tmp_path / "out")
    assert not (tmp_path / "out").exists(), "nothing is written when anything is wrong"


@pytest.mark.parametrize("kept", [0, 4, 100, -8, -1])
def test_a_stream_that_was_cut_short_is_named(arrow: Path, tmp_path: Path, kept: int) -> None:
    stream = arrow / "subflows.arrow"
    data = stream.read_bytes()
    stream.write_bytes(data[:kept])
    with pytest.raises(DataError, match=r"subflows\.arrow: .* truncated"):
        convert(arrow, tmp_path / "out")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_compressed_stream_is_refused_before_it_expands(
    arrow: Path, tmp_path: Path, compression: Literal["zstd", "lz4"]
) -> None:
    stream = arrow / "links.arrow"
    rows = pl.concat([DATA["links"]] * 1000)
    rows.write_ipc_stream(stream, compression=compression, compat_level=pl.CompatLevel.oldest())
    assert stream.stat().st_size < rows.estimated_size() / 10
    with pytest.raises(DataError, match=r"links\.arrow: the stream of table `links` is compressed"):
        convert(arrow, tmp_path / "out")


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical])
def test_a_text_that_many_rows_share_is_refused_before_it_expands(
    arrow: Path, tmp_path: Path, kind: type[pl.DataType]
) -> None:
    stream = arrow / "counters.arrow"
    text = pl.Series(["x" * 100_000]).new_from_index(0, 1000).cast(kind)
    rows = DATA["counters"].head(1).select(node=text, counter=text, before=pl.lit(0), after=pl.lit(0))
    rows.write_ipc_stream(stream)
    assert stream.stat().st_size < 300_000 < 2 * 1000 * 100_000
    with pytest.raises(DataError, match=r"counters\.arrow: the stream of table `counters` has a column that"):
        convert(arrow, tmp_path / "out")


def test_bytes_that_columns_share_are_refused() -> None:
    content = io.BytesIO()
    pl.DataFrame({"a": [7] * 64, "b": [8] * 64}).write_ipc_stream(content)
    stream, second = content.getvalue(), struct.pack("<qq", 512, 512)
    check_stream(stream)
    at = stream.rindex(second)
    for place, length in ((0, 512), (8, 512), (512, 1024), (-1, 512), (512, -1)):
        moved = stream[:at] + struct.pack("<qq", place, length) + stream[at + 16 :]
        with pytest.raises(ForeignStreamError, match="has columns that share bytes"):
            check_stream(moved)


@given(st.data())
def test_damage_of_the_framing_is_an_error_or_seen_by_the_library(data: st.DataObject) -> None:
    stream = io.BytesIO()
    DATA["flows"].write_ipc_stream(stream, compression="uncompressed")
    damaged = bytearray(stream.getvalue())
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, min(400, len(damaged) - 1)))] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        check_stream(bytes(damaged))


def test_a_damaged_stream_is_named(arrow: Path, tmp_path: Path) -> None:
    stream = arrow / "flows.arrow"
    data = bytearray(stream.read_bytes())
    data[8:200] = bytes(192)
    stream.write_bytes(data)
    with pytest.raises(DataError, match=r"flows\.arrow: this is not a readable Arrow stream"):
        convert(arrow, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda frame: frame.drop("rtt_us"), "column `rtt_us` of table `subflows` is missing"),
        (lambda frame: frame.cast({"rtt_us": pl.Float64}), "column `rtt_us` .* is Float64, expected Int64"),
        (lambda frame: frame.with_columns(extra=1), "column `extra` does not belong to table `subflows`"),
        (lambda frame: frame.select(reversed(frame.columns)), "are in the order"),
    ],
)
def test_other_columns_than_the_contract_are_refused(
    arrow: Path, tmp_path: Path, change, message: str
) -> None:
    change(DATA["subflows"]).write_ipc_stream(arrow / "subflows.arrow", compat_level=pl.CompatLevel.oldest())
    with pytest.raises(DataError, match=rf"subflows\.arrow: .*{message}"):
        convert(arrow, tmp_path / "out")


def test_a_trial_reads_back(tmp_path: Path) -> None:
    write_trial(tmp_path, PLAN, DATA)
    trial = read_trial(tmp_path)
    assert trial.plan == PLAN
    assert trial.provenance.status == "ok"
    assert set(trial.tables) == set(TABLES)
    assert trial_digest(trial.tables) == trial_digest(DATA) == trial.provenance.digest


def test_all_tables_at_once_are_those_that_single_reads_give(tmp_path: Path) -> None:
    write_trial(tmp_path, PLAN, DATA)
    together, single = read_trial(tmp_path).tables, read_trial(tmp_path).tables
    together.read_all()
    assert all(together[name].equals(single[name], null_equal=True) for name in single)


def test_of_all_tables_the_damaged_one_is_named(tmp_path: Path) -> None:
    write_trial(tmp_path, PLAN, DATA)
    damaged = next(tmp_path.rglob("links.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"links\.parquet: this is not a readable Parquet file"):
        read_trial(tmp_path).tables.read_all()


def test_a_failed_trial_needs_no_tables(tmp_path: Path) -> None:
    write_trial(tmp_path, PLAN, None, "the guest panicked")
    trial = read_trial(tmp_path)
    assert (trial.provenance.status, trial.provenance.error) == ("failed", "the guest panicked")
    with pytest.raises(
        DataError, match=r"flows\.parquet: the table `flows` is missing; delete the trial's folder"
    ):
        trial.tables["flows"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("flows.parquet", b"PAR1 this is not Parquet PAR1", "this is not a readable Parquet file"),
        ("flows.parquet", b"", "this is not a readable Parquet file"),
        ("plan.json", b"{}", r"not a plan of this version of plait: .*(and \d+ more)"),
        ("plan.json", b"\xff\xfe", "not a plan"),
        (
            "plan.json",
            b'{"schema": 7, "new": 1}',
            "not a plan .* it has schema 7, and this version of plait reads 1; use",
        ),
    ],
)
def test_damaged_files_are_named_with_the_remedy(
    tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    write_trial(tmp_path, PLAN, DATA)
    (tmp_path / name).write_bytes(content)
    trial = read_trial(tmp_path)
    with pytest.raises(DataError, match=rf"{name}: {message}"):
        _ = (trial.plan, trial.tables["flows"])


def test_a_folder_without_provenance_is_no_trial(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"provenance\.json: cannot be read"):
        read_trial(tmp_path)
    (tmp_path / "provenance.json").write_text('{"schema": 2}')
    with pytest.raises(DataError, match=r"provenance\.json: not a trial's provenance: it has schema 2"):
        read_trial(tmp_path)


def test_provenance_survives_its_file() -> None:
    provenance = Provenance(status="ok", seed=1, identity="x", plait_version="0", host={"cores": 2})
    text = provenance.model_dump_json()
    assert '"schema":1' in text
    assert Provenance.model_validate_json(text) == provenance


@pytest.mark.parametrize("table", ALL_TABLES)
def test_any_single_cell_changes_the_digest(table: str) -> None:
    """Every column of every table: another value, a null for a value, a value for a null."""
    rows = {name: [dict.fromkeys(schema)] * 2 for name, schema in ALL_TABLES.items()}
    values = {pl.Int64: (0, 7), pl.String: ("", "x"), pl.Boolean: (False, True)}
    digests = {trial_digest(make_tables(rows))}
    for column, dtype in ALL_TABLES[table].items():
        for value in values[type(dtype)]:
            for row in (0, 1):
                changed = {**rows, table: [dict(old) for old in rows[table]]}
                changed[table][row][column] = value
                digest = trial_digest(make_tables(changed))
                assert digest not in digests, f"{table}.{column}[{row}] = {value!r}"
                digests.add(digest)


def test_moving_letters_between_cells_changes_the_digest() -> None:
    def digest(*names: str | None) -> str:
        return trial_digest(make_tables({"flows": [{"name": name} for name in names]}))

    assert (
        len({digest("ab", "c"), digest("a", "bc"), digest("abc", ""), digest("abc", None), digest("abc")})
        == 5
    )


def test_the_digest_does_not_depend_on_how_the_file_is_written(tmp_path: Path) -> None:
    digests = set()
    for compression in ("zstd", "snappy", "uncompressed"):
        path = tmp_path / f"{compression}.parquet"
        DATA["subflows"].write_parquet(path, compression=compression, row_group_size=50)
        digests.add(trial_digest(DATA | {"subflows": pl.read_parquet(path)}))
    assert digests == {trial_digest(DATA)}


def test_the_digest_does_not_depend_on_chunks_or_on_the_order_of_tables() -> None:
    frame = DATA["subflows"]
    chunked = pl.concat([frame[:100], frame[100:]], rechunk=False)
    reordered = dict(reversed((DATA | {"subflows": chunked}).items()))
    assert trial_digest(reordered) == trial_digest(DATA)


def test_the_encoding_of_the_digest_is_what_it_was() -> None:
    """Digests are compared across machines and years: this constant changes with the encoding or a table's columns."""
    tables = make_tables(
        {
            "flows": [
                {"flow": 0, "name": "f\N{LATIN SMALL LETTER U WITH DIAERESIS}", "completed": True},
                {"flow": None},
            ]
        }
    )
    assert trial_digest(tables) == "sha256:1de6bac5da4da0bb81556cb2a4265617f836033b7e0714071f3b888de3ceb8a6"


def test_a_column_that_earlier_versions_lack_counts_only_where_it_has_a_value(tmp_path: Path) -> None:
    row = {"t_us": 0, "link": "a->b", "sent_bytes": 7}
    tables = make_tables({"links": [row]})
    earlier = tables["links"].drop("bucket_bytes")
    earlier.write_parquet(tmp_path / "links.parquet")
    read = read_table(Folder(tmp_path), "links")
    assert read.equals(tables["links"])
    assert trial_digest(tables | {"links": read}) == trial_digest(tables | {"links": earlier})
    level = make_tables({"links": [row | {"bucket_bytes": 0}]})
    assert trial_digest(level) != trial_digest(tables)


def test_beside_a_null_the_digest_tells_integers_apart_that_float64_does_not() -> None:
    def digest(count: int) -> str:
        return trial_digest(make_tables({"flows": [{"sent_bytes": count}, {"sent_bytes": None}]}))

    assert len({digest(2**53), digest(2**53 + 1), digest(-(2**53) - 1), digest(2**62 + 1)}) == 4


def test_a_study_digest_covers_case_number_and_data_in_any_order() -> None:
    trials = [("a", 0, "sha256:1"), ("a", 1, "sha256:2"), ("b", 0, "sha256:1")]
    assert study_digest(trials) == study_digest(trials[::-1])
    others = [trials[:2], [("a", 0, "sha256:1"), ("a", 1, "sha256:2"), ("b", 1, "sha256:1")], []]
    assert len({study_digest(trials), *map(study_digest, others)}) == 4
