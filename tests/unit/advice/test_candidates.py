"""What a person can change follows from the lines and the settings of a scenario, and each change can be taken back."""

from __future__ import annotations

import json

import pytest

from plait.advice.candidates import CHANGES, against_cause, candidates
from plait.advice.changes.model import NOW, Candidate, together
from plait.advice.goals import GOALS, Goal, goals_named
from plait.advice.search import round_text, shaper_on, worse_lines
from plait.advice.situation import Situation
from plait.errors import RequestError
from plait.explain.causes import CAUSES
from plait.plan.resolve import resolve
from plait.scenario import parse
from plait.scenario.vary.cases import expand

LINES = """\
title: Two lines
network:
  hosts:
    home: {congestion_control: cubic, sysctls: {net.ipv4.tcp_rmem: "4096 131072 6291456"}}
    vps: {}
  links:
    home-vps: {label: "cable (eth0)", forward: {rate: 10mbit, delay: 7ms, queue: 250KB},
               backward: {rate: 50mbit, delay: 7ms, queue: 100KB}}
    home-vps#2: {label: "lte (wwan0)", rate: 20mbit, delay: 25ms}
mptcp:
  limits: {home: {subflows: 2, add_addr_accepted: 1}, vps: {subflows: 2, add_addr_accepted: 0}}
  endpoints: {home: [{link: home-vps#2, flags: [subflow]}], vps: [{link: home-vps#2, flags: [signal]}]}
traffic: [{bulk: {from: vps, to: home, reverse: true, duration: 10s}}]
vary: {transport: [tcp, mptcp]}
"""


def situation(text: str = LINES) -> Situation:
    return Situation.of(parse(text, "lines.yaml", ()))


def named(text: str = LINES) -> dict[str, Candidate]:
    return {candidate.name: candidate for candidate in candidates(situation(text))}


def test_the_host_that_connects_is_the_client_and_its_links_are_the_lines() -> None:
    result = situation()
    assert (result.client, result.server) == ("home", "vps")
    assert [line.title for line in result.lines] == ["cable (eth0)", "lte (wwan0)"]
    assert result.lines[0].up["rate"] == "10mbit"
    assert result.lines[0].down["rate"] == "50mbit"


def test_only_what_would_change_something_is_a_candidate() -> None:
    assert set(named()) == {
        *("now", "bbr", "reno", "buffers", "notsent-lowat", "lte-backup", "first-lte", "tcp", "shape-cable"),
        *("two-subflows", "lia", "olia", "balia"),
    }
    backup = named(LINES.replace("flags: [subflow]", "flags: [subflow, backup]"))
    assert "use-lte" in backup
    assert "lte-backup" not in backup
    large = LINES.replace("6291456", "16777216").replace(
        "vps: {}", 'vps: {sysctls: {net.ipv4.tcp_rmem: "4096 131072 16777216"}}'
    )
    assert "net.ipv4.tcp_rmem" not in str(named(large)["buffers"].commands)


def test_a_shaper_takes_a_part_of_the_rate_only_where_a_queue_takes_longer_than_50_ms() -> None:
    """250 KB at 10 Mbit/s are 200 ms, and 100 KB at 50 Mbit/s 16 ms."""
    shaper = named()["shape-cable"]
    link = shaper.settings["network.links.home-vps"]
    assert link["forward"] == {"rate": "9500kbit", "delay": "7ms", "aqm": "fq_codel"}
    assert link["backward"] == {"rate": "50mbit", "delay": "7ms", "queue": "100KB"}
    (command,) = shaper.commands
    assert command.command == "tc qdisc add dev eth0 root handle 7a17: cake bandwidth 9500kbit"


@pytest.mark.parametrize(
    ("bucket", "rate"), [("{burst: 5kB}", "9500kbit"), ("{baseline: 4mbit, burst: 1MB}", "3800kbit")]
)
def test_a_shaper_in_front_of_a_token_bucket_leaves_it_full_also_on_a_slower_line(
    bucket: str, rate: str
) -> None:
    """It took the rate of the burst, and 30 % less than that was below the baseline: no scenario."""
    text = LINES.replace("forward: {rate: 10mbit", f"forward: {{bucket: {bucket}, rate: 10mbit")
    shaper = named(text)["shape-cable"]
    link = shaper.settings["network.links.home-vps"]
    assert link["forward"] == {"rate": rate, "delay": "7ms", "aqm": "fq_codel"}
    _, lines = worse_lines(situation(text))[0]
    assert shaper_on(shaper, lines).settings == {}, "it keeps its rate, which the line no longer has"
    parse(round_text(situation(text), GOALS["upload"], [NOW], lines), "round", ())


def test_every_change_has_a_command_that_takes_it_back() -> None:
    for candidate in named().values():
        assert bool(candidate.commands) == (candidate is not NOW)
        for item in candidate.commands:
            assert item.host in {"home", "vps"}
            assert item.command != item.undo
    sysctls = [item for item in named()["buffers"].commands if item.host == "home"]
    assert sysctls[0].undo == "sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'"


def test_a_strangers_scenario_gets_nothing_into_a_command() -> None:
    hostile = LINES.replace(
        '{net.ipv4.tcp_rmem: "4096 131072 6291456"}', '{net.ipv4.tcp_rmem: "4096 131072 6; touch OWNED"}'
    )
    with pytest.raises(RequestError, match="is no three sizes in bytes"):
        named(hostile)
    label = LINES.replace("cable (eth0)", "cable ($(touch OWNED))")
    for item in named(label)["shape-cable"].commands:
        assert "OWNED" not in item.command + item.undo
        assert "$" not in item.note


def test_two_lines_of_one_name_have_two_candidates_and_two_shapers() -> None:
    """Both were called shape-lte, and the commands were those of the other line than the advice named."""
    queue = "queue: 900KB, rate: 20mbit, delay: 9ms"
    text = LINES.replace(
        '{label: "lte (wwan0)", rate: 20mbit, delay: 25ms}', f'{{label: "cable (eth1)", {queue}}}'
    )
    shapers = {name: candidate for name, candidate in named(text).items() if name.startswith("shape")}
    assert set(shapers) == {"shape-cable", "shape-cable-2"}
    assert "eth0" in str(shapers["shape-cable"].commands)
    assert "eth1" in str(shapers["shape-cable-2"].commands)
    assert "plait-ifb2" in str(shapers["shape-cable-2"].commands)


def test_another_spelling_of_a_sysctl_is_the_same() -> None:
    slashes = LINES.replace("net.ipv4.tcp_rmem:", "net/ipv4/tcp_rmem:")
    assert named(slashes)["buffers"] == named()["buffers"]
    (undo,) = [
        item.undo for item in named()["buffers"].commands if item.host == "vps" and "rmem" in item.command
    ]
    assert undo == "sysctl -p /run/plait-former-net.ipv4.tcp_rmem && rm /run/plait-former-net.ipv4.tcp_rmem"


def test_an_endpoint_that_is_added_has_an_id_that_its_undo_takes() -> None:
    text = LINES.replace("home: [{link: home-vps#2, flags: [subflow]}]", "home: []")
    (added,) = [item for item in named(text)["use-lte"].commands if "endpoint" in item.command]
    assert "dev wwan0 id 219 subflow" in added.command
    assert added.undo == "ip mptcp endpoint delete id 219"


@pytest.mark.parametrize("goal", GOALS.values(), ids=list(GOALS))
def test_every_candidate_can_be_planned_for_every_goal(goal: Goal) -> None:
    result = situation()
    for candidate in candidates(result)[1:]:
        raw = {
            **result.raw,
            "traffic": goal.traffic(result.client, result.server),
            "vary": {"change": {"now": {}, candidate.name: candidate.fields(goal.traffic("home", "vps"))}},
        }
        assert len(expand(parse(json.dumps(raw), "advice", ()))) == 2


def test_two_changes_go_together_unless_one_replaces_the_other() -> None:
    by_name = named()
    both = together(by_name["bbr"], by_name["buffers"])
    assert both is not None
    assert both.parts == ("bbr", "buffers")
    assert len(both.commands) == len(by_name["bbr"].commands) + len(by_name["buffers"].commands)
    assert together(by_name["bbr"], by_name["reno"]) is None
    assert together(by_name["bbr"], by_name["tcp"]) is None
    assert together(by_name["buffers"], by_name["buffers"]) is None


@pytest.mark.parametrize("name", ["net.ipv4.tcp_rmem", "net/ipv4/tcp_rmem"])
def test_two_changes_of_sysctls_both_hold_beside_those_of_the_scenario(name: str) -> None:
    """The second change brought back what the scenario sets, so that the first did nothing."""
    result = situation(LINES.replace("{net.ipv4.tcp_rmem:", f"{{net.ipv4.tcp_no_metrics_save: 1, {name}:"))
    by_name = {candidate.name: candidate for candidate in candidates(result)}
    both = together(by_name["buffers"], by_name["notsent-lowat"])
    assert both is not None
    traffic = [{"bulk": {"from": "vps", "to": "home", "reverse": True, "duration": "10s"}}]
    raw = {**result.raw, "traffic": traffic, "vary": {"change": {"now": {}, both.name: both.fields(traffic)}}}
    *_, case = expand(parse(json.dumps(raw), "advice", ()))
    namespaces = {item.name: dict(item.sysctls) for item in resolve(case.scenario, 1).network.namespaces}
    for host in ("home", "vps"):
        assert namespaces[host]["net/ipv4/tcp_rmem"] == "4096 131072 16777216"
        assert namespaces[host]["net/ipv4/tcp_notsent_lowat"] == "131072"
    assert namespaces["home"]["net/ipv4/tcp_no_metrics_save"] == "1"


def test_mistakes_are_refused_with_the_remedy() -> None:
    with pytest.raises(RequestError, match="has 1 line, and an advice compares two or more"):
        situation(
            LINES.replace('    home-vps#2: {label: "lte (wwan0)", rate: 20mbit, delay: 25ms}\n', "").replace(
                "home-vps#2", "home-vps"
            )
        )
    with pytest.raises(RequestError, match="did you mean 'download'"):
        goals_named("downlaod")
    with pytest.raises(RequestError, match="names no goal"):
        goals_named(" , ")


def test_a_value_that_the_scenario_lacks_is_kept_by_the_command_before_it_changes() -> None:
    """The undo of bbr was cubic on every host, and that of other settings a remark after the command."""
    on_home, on_vps = named()["bbr"].commands
    kept = "/run/plait-former-net.ipv4.tcp_congestion_control"
    assert on_home.undo == "sysctl -w net.ipv4.tcp_congestion_control=cubic"
    assert on_vps.undo == f"sysctl -p {kept} && rm {kept}"
    assert on_vps.command.startswith(f"test -e {kept} || sysctl net.ipv4.tcp_congestion_control >{kept}; ")
    reno = named(LINES.replace("vps: {}", "vps: {sysctls: {net.ipv4.tcp_congestion_control: reno}}"))
    assert reno["bbr"].commands[1].undo == "sysctl -w net.ipv4.tcp_congestion_control=reno"


@pytest.mark.parametrize(
    ("label", "interface"),
    [
        ("lte (wwan0)", "wwan0"),
        ("enp3s0", "enp3s0"),
        ("wlp2s0f1", "wlp2s0f1"),
        ("lte", None),
        ("cable", None),
        ("lte ($(id))", None),
    ],
)
def test_only_a_name_in_brackets_or_of_an_interface_is_one(label: str, interface: str | None) -> None:
    """Each label of one word was taken for an interface, and `lte` is none."""
    second = situation(LINES.replace("lte (wwan0)", label)).lines[1]
    assert second.interface == interface


def test_a_command_without_an_interface_says_what_to_write_for_it() -> None:
    (command,) = named(LINES.replace("lte (wwan0)", "lte $(id)"))["lte-id-backup"].commands
    assert "dev INTERFACE2 " in command.command
    assert command.note == "write the interface of lte ?(id) for INTERFACE2; `ip -brief address` lists them"
    given = Situation.of(parse(LINES, "lines.yaml", ()), ["cable0", "wwp0s20u1"])
    assert [line.interface for line in given.lines] == ["cable0", "wwp0s20u1"]
    with pytest.raises(RequestError, match=r"names 1 of 2 lines; .* in this order: cable \(eth0\), lte"):
        Situation.of(parse(LINES, "lines.yaml", ()), ["eth0"])
    with pytest.raises(RequestError, match="is no name of an interface"):
        Situation.of(parse(LINES, "lines.yaml", ()), ["eth0", "$(id)"])


@pytest.mark.parametrize(("families", "option"), [("", ""), ("ipv4", "-4 "), ("ipv6", "-6 "), ("dual", "")])
def test_an_endpoint_has_the_address_of_the_family_of_its_line(families: str, option: str) -> None:
    """The commands asked for an IPv4 address on lines that have IPv6 alone."""
    field = f"network:\n  addresses: {families}\n" if families else "network:\n"
    (command,) = named(LINES.replace("network:\n", field))["lte-backup"].commands
    assert f"ip -o {option}address show dev wwan0 scope global" in command.command


def test_a_third_host_and_its_link_are_no_part_of_the_lines() -> None:
    third = LINES.replace("    vps: {}\n", "    vps: {}\n    nas: {}\n").replace(
        "mptcp:\n", "    home-nas: {rate: 1gbit}\nmptcp:\n"
    )
    result = situation(third)
    assert [line.link for line in result.lines] == ["home-vps", "home-vps#2"]
    assert result.others == ["nas"]


def test_no_delay_is_below_that_of_the_shortest_line() -> None:
    assert situation().least_delay_s(0) == 0.0
    assert situation().least_delay_s(1) == 0.007
    assert situation().least_delay_s(2) == 0.014
    varying = LINES.replace(
        "rate: 20mbit, delay: 25ms", "rate: 20mbit, delay: 25ms, jitter: {deviation: 2ms}"
    )
    assert situation(varying).least_delay_s(1) == 0.0


def test_connections_that_begin_on_another_line_use_the_first_one_too() -> None:
    first = named()["first-lte"]
    assert first.fields([{"bulk": {}}, {"stream": {}}]) == {
        "mptcp.endpoints.home": [{"link": "home-vps", "flags": ["subflow"]}],
        "mptcp.endpoints.vps": [
            {"link": "home-vps#2", "flags": ["signal"]},
            {"link": "home-vps", "flags": ["signal"]},
        ],
        "traffic.0.bulk.via": "home-vps#2",
        "traffic.1.stream.via": "home-vps#2",
    }
    route, endpoint = first.commands
    assert "prepend default $(ip -4 route show default dev wwan0" in route.command
    assert route.lasting is None
    assert "dev eth0 id 218 subflow" in endpoint.command
    both = together(first, named()["bbr"])
    assert both is not None
    assert both.first == "home-vps#2"
    assert together(first, named()["lte-backup"]) is None


def test_limits_are_a_change_only_where_they_hold_an_endpoint_back() -> None:
    assert "limits" not in named()
    tight = named(LINES.replace("home: {subflows: 2", "home: {subflows: 0"))["limits"]
    assert tight.settings["mptcp.limits.home"] == {"subflows": 1, "add_addr_accepted": 1}
    (command,) = tight.commands
    assert (command.command, command.undo) == (
        "ip mptcp limits set subflows 1", "ip mptcp limits set subflows 0"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cause", "name"), [("receive-memory", "buffers"), ("initial-path-poor", "first-lte")]
)
def test_a_cause_that_a_change_may_help_against_has_one(cause: str, name: str) -> None:
    """Explain ended without a line for these two."""
    assert name in {candidate.name for candidate in against_cause(situation(), cause)}


def test_every_cause_that_a_change_may_help_against_is_one_of_explain() -> None:
    assert {cause for causes in CHANGES.values() for cause in causes} <= set(CAUSES)
    names = [change.name for change in against_cause(situation(), "loss-recovery")]
    assert names == ["bbr", "reno", "two-subflows"]


def test_second_subflows_go_to_a_further_port_of_the_server_and_limits_allow_them() -> None:
    change = named()["two-subflows"]
    assert change.settings == {
        "mptcp.endpoints.home": [
            {"link": "home-vps#2", "flags": ["fullmesh"]},
            {"link": "home-vps", "flags": ["fullmesh"]},
        ],
        "mptcp.endpoints.vps": [
            {"link": "home-vps", "flags": ["signal"], "port": 5011},
            {"link": "home-vps#2", "flags": ["signal"], "port": 5011},
            {"link": "home-vps#2", "flags": ["signal"], "port": 5012},
        ],
        "mptcp.limits.home": {"subflows": 8, "add_addr_accepted": 8},
        "mptcp.limits.vps": {"subflows": 8, "add_addr_accepted": 8},
    }
    limits, cable, lte, *on_vps = change.commands
    assert limits.command.endswith("ip mptcp limits set subflows 3 add_addr_accepted 2")
    assert cable.command.endswith("dev eth0 id 218 subflow fullmesh")
    assert lte.command.endswith(" fullmesh")
    assert lte.undo.endswith(" nofullmesh")
    assert [item.command for item in on_vps[1:]] == [
        f"ip mptcp endpoint add ADDRESS{line} id {227 + line} port 5011 signal" for line in (1, 2)
    ]
    assert all(item.lasting is None for item in change.commands)


def test_a_backup_stays_one_with_second_subflows_and_an_idle_line_stays_idle() -> None:
    backup = named(LINES.replace("flags: [subflow]", "flags: [subflow, backup]"))["two-subflows"]
    assert {"link": "home-vps#2", "flags": ["fullmesh", "backup"]} in backup.settings["mptcp.endpoints.home"]
    assert "fullmesh backup" in backup.commands[2].command
    idle = named(LINES.replace("home: [{link: home-vps#2, flags: [subflow]}]", "home: []"))["two-subflows"]
    assert idle.settings["mptcp.endpoints.home"] == [{"link": "home-vps", "flags": ["fullmesh"]}]
    assert idle.commands[0].command.endswith("ip mptcp limits set subflows 1 add_addr_accepted 1")


def test_a_coupled_algorithm_is_loaded_before_it_is_set_and_taken_away_after_the_undo() -> None:
    on_home, on_vps = named()["olia"].commands
    setting = "sysctl -w net.ipv4.tcp_congestion_control"
    assert on_home.command == f"plait bpf load olia && {setting}=olia"
    assert on_home.undo == f"{setting}=cubic && plait bpf unload olia"
    assert on_vps.command.endswith(f"; plait bpf load olia && {setting}=olia")
    assert on_vps.lasting is None
    partly = named(LINES.replace("congestion_control: cubic", "congestion_control: olia"))
    assert [item.host for item in partly["olia"].commands] == ["vps"], "home has it, and keeps it at the undo"
