"""A valid scenario has its defaults, link directions, options and files, and fits the schema."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import jsonschema
import pytest
from test_scenario_properties import FULL

from plait.errors import ScenarioError
from plait.plan.resolve import resolve
from plait.scenario import load, parse
from plait.scenario.read import library
from plait.scenario.read.document import read
from plait.scenario.schema import schema, schema_text
from plait.scenario.vary.cases import expand
from plait.traffic.bulk import Bulk
from plait.traffic.transfer import File, Transfer
from scenario_samples import TWO, all_plans, direct, plan_of

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "scenarios").glob("*.yaml"), key=lambda path: path.stem)


def test_defaults_are_what_the_reference_says() -> None:
    scenario = parse(TWO, "t.yaml")
    assert (scenario.transport, scenario.repeat, scenario.seed, str(scenario.sample.every)) == (
        "mptcp",
        1,
        1,
        "100ms",
    )
    assert (scenario.tcp.congestion_control, scenario.mptcp.scheduler) == ("cubic", "default")
    assert str(scenario.traffic[0].flow.start_jitter) == "10ms"


def test_nodes_are_a_list_or_a_mapping() -> None:
    mapping = TWO.replace("[h1, h2]", "{h1: , h2: {sysctls: {net.ipv4.tcp_sack: 0}}}").replace(
        "[s1, s2]", "{s1: {}, s2: }"
    )
    assert list(parse(mapping, "t").network.hosts) == ["h1", "h2"]
    assert dict(plan_of(mapping).network.namespaces[1].sysctls)["net/ipv4/tcp_sack"] == "0"


def test_a_direction_replaces_single_conditions_of_its_link() -> None:
    plan = plan_of(
        direct(
            "a-b: {rate: 10mbit, delay: 20ms, loss: 1%, backward: {rate: 1mbit, loss: 0%}, forward: {delay: 5ms}}"
        )
    )
    forward, backward = plan.links[0].directions
    assert (forward.name, forward.rate_bps, forward.delay_ns, forward.loss_ratio) == (
        "a->b",
        10**7,
        5 * 10**6,
        0.01,
    )
    assert (backward.name, backward.rate_bps, backward.delay_ns, backward.loss_ratio) == (
        "b->a",
        10**6,
        2 * 10**7,
        0,
    )


def test_options_are_put_in_before_the_scenario_is_read() -> None:
    overrides = ("repeat=3", "network.links.h1-*.rate=1 mbit", "traffic.0.bulk.duration=2s", "vary.transport=[tcp]",
                 "network.hosts.h1.addresses.h1-s1=10.9.0.7/24", "tcp.congestion_control=reno")  # fmt: skip
    scenario = parse(TWO, "t.yaml", overrides)
    assert scenario.repeat == 3
    assert [str(link.rate) for link in scenario.network.links.values()] == [
        "1mbit",
        "5mbit",
        "1mbit",
        "5mbit",
    ]
    assert scenario.vary == {"transport": ["tcp"]}
    plan = resolve(expand(scenario)[0].scenario, 1)
    assert plan.flows[0].client.address == "10.9.0.7"
    assert plan.flows[0].application == Bulk(duration_us=2_000_000)
    assert dict(plan.network.namespaces[0].sysctls)["net/ipv4/tcp_congestion_control"] == "reno"


def test_a_scenario_survives_being_written_and_read_again() -> None:
    scenario = parse(FULL, "t.yaml")
    again = parse(json.dumps(scenario.model_dump(mode="json", by_alias=True, exclude_none=True)), "again")
    assert again.model_dump() == scenario.model_dump()
    assert [c.name for c in expand(again)] == [c.name for c in expand(scenario)]


def test_a_file_is_sent_with_its_size_and_checksum(tmp_path: Path) -> None:
    content = b"plait" * 1000
    (tmp_path / "input.bin").write_bytes(content)
    text = direct("a-b: {rate: 1mbit}", "transfer: {from: a, to: b, file: input.bin}")
    (tmp_path / "send.yaml").write_text(text, encoding="utf-8")
    scenario = load(tmp_path / "send.yaml")
    sha256 = hashlib.sha256(content).hexdigest()
    assert scenario.input_files() == dict.fromkeys(("input.bin", sha256), (tmp_path / "input.bin").resolve())
    flow = resolve(expand(scenario)[0].scenario, 1).flows[0]
    sent = File(name="input.bin", bytes=5000, sha256=sha256)
    assert flow.application == Transfer(bytes=5000, file=sent)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("none.bin", "cannot be read"),
        ("empty.bin", "empty or not a regular file"),
        (".", "not a regular file"),
    ],
)
def test_a_file_that_cannot_be_sent_is_a_located_mistake(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "empty.bin").touch()
    text = direct("a-b: {}", f"transfer: {{from: a, to: b, file: {name}}}")
    (tmp_path / "send.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioError, match=f"send.yaml:3:38: traffic.0.transfer.file: .*{why}"):
        load(tmp_path / "send.yaml")


def test_files_of_equal_name_stay_distinct(tmp_path: Path) -> None:
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "f").write_text(folder, encoding="utf-8")
    traffic = ", ".join(f"{{transfer: {{from: a, to: b, file: {folder}/f}}}}" for folder in ("x", "y"))
    (tmp_path / "s.yaml").write_text(direct("a-b: {}", traffic), encoding="utf-8")
    scenario = load(tmp_path / "s.yaml")
    assert scenario.input_files().keys() >= {"f", "1-f"}
    assert len({*scenario.input_files().values()}) == 2


def test_a_file_that_is_no_scenario_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"title: x\ndescription: caf\xe9\n")
    with pytest.raises(ScenarioError, match=r"latin.yaml:2:17: this is not UTF-8 text"):
        load(tmp_path / "latin.yaml")
    with pytest.raises(ScenarioError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(ScenarioError, match="no shipped scenario of that name; did you mean 'two-paths'"):
        load("two-path")
    folder = tmp_path / ("long-name-" * 20)
    folder.mkdir()
    (folder / "home.yaml").write_text("title: x\n")
    with pytest.raises(ScenarioError, match=r"did you mean '.*/home\.yaml'"):
        load(folder / "home.yml")
    with pytest.raises(ScenarioError, match=r"`plait list` shows them"):
        load(folder / "qqqq")
    with pytest.raises(ScenarioError, match="/dev/null is not a regular file"):
        load("/dev/null")


def test_shipped_scenarios_are_listed_with_their_titles() -> None:
    assert [name for name, _ in library.shipped()] == [path.stem for path in SHIPPED]
    assert dict(library.shipped())["two-paths"] == "Two 5 Mbit/s paths between two hosts"


@pytest.fixture(scope="module")
def schema_of_scenarios() -> jsonschema.Draft202012Validator:
    """Return what validates a scenario; validating the schema itself takes longer than most scenarios."""
    return jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_scenario_can_be_planned_and_fits_the_schema(
    path: Path, schema_of_scenarios: jsonschema.Draft202012Validator
) -> None:
    scenario = load(path.stem)
    assert scenario.description
    for case in expand(scenario):
        resolve(case.scenario, 1)
    schema_of_scenarios.validate(read(path.read_text(encoding="utf-8")).value)


def test_the_schema_in_the_reference_is_current() -> None:
    kept = (ROOT / "docs/reference/scenario.schema.json").read_text(encoding="utf-8")
    assert kept == schema_text(), (
        "write it with: python -m plait.scenario.schema > docs/reference/scenario.schema.json"
    )


def test_the_schema_accepts_what_is_valid_and_refuses_what_is_not() -> None:
    check = jsonschema.Draft202012Validator(schema())
    check.check_schema(schema())
    assert check.is_valid(read(FULL).value)
    for wrong in (
        TWO.replace("5mbit", "5"),
        TWO.replace("rate", "rat"),
        TWO.replace("10s", "-10s"),
        TWO + "repeat: 0",
        TWO + "sample: {flow: 5}",
        TWO + "monitors: {ping: {evry: 1s}}",
    ):
        assert not check.is_valid(read(wrong).value)


def test_every_field_of_the_schema_says_what_it_means_or_has_a_telling_type() -> None:
    body = schema()
    for name in ("LinkSpec", "BulkSpec", "TransferSpec", "EndpointSpec"):
        assert body["$defs"][name]["description"]
    assert body["properties"]["until"]["description"].startswith("Latest end of the trial")


def test_the_reference_documents_every_field() -> None:
    pages = ("scenario.md", "generators.md")
    text = "".join((ROOT / "docs/reference" / page).read_text(encoding="utf-8") for page in pages)
    body = schema()
    for part in (body, *body["$defs"].values()):
        for field in part.get("properties", {}):
            assert f"`{field}`" in text, f"docs/reference does not tell of {field}"


def test_the_examples_of_the_reference_can_be_planned() -> None:
    text = (ROOT / "docs/reference/scenario.md").read_text(encoding="utf-8")
    examples = [block for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL) if "title:" in block]
    assert len(examples) == 2
    for example in examples:
        assert all_plans(example)
