"""plait locates each mistake of a scenario, says what would be right, and reports all at once."""

from __future__ import annotations

import time

import pytest

from plait.scenario import parse
from plait.scenario.vary.cases import expand
from scenario_samples import TWO, WORK_S, direct, mistakes, mistakes_as_text


def changed(old: str, new: str) -> str:
    assert old in TWO
    return TWO.replace(old, new)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # not a scenario at all
        ("", "t.yaml:1:1: the file is empty; start with title:"),
        ("\n\n# only a comment\n", "t.yaml:1:1: the file is empty"),
        ("hello", "t.yaml:1:1: this is 'hello', not a scenario"),
        ("x" * 50, f"t.yaml:1:1: this is '{'x' * 40}..', not a scenario"),
        ("- a\n- b\n", "not a scenario"),
        ("\x00\x01\x7fELF", "t.yaml:1:1: this character is not allowed"),
        ("title: a\x07b", "t.yaml:1:9: this character is not allowed"),
        ("title: [a\nb: c", "t.yaml:1:8: the [ here is not closed"),
        (
            "title: x\nnetwork:\n\thosts: [a]\n",
            "t.yaml:3:1: YAML does not allow tabs here; indent with spaces",
        ),
        (TWO + "---\na: b\n", "t.yaml:12:1: a second document begins here"),
        ("title: *x\n", "t.yaml:1:8: title: *x has no &x before it"),
        ("title: &a [*a]\n", "title.0: *a has no &a before it"),
        ("title: !!python/object:os.system x\n", "t.yaml:1:8: title: plait does not read tags such as"),
        ("? [a]\n: b\n", "the key of this mapping is not plain text"),
        (
            changed("h1-s1: {", "h1-s1: {<<: {}, "),
            "network.links.h1-s1.<<: plait does not read merge keys (<<)",
        ),
        # fields
        (
            changed("title:", "titel:"),
            "t.yaml:1:1: titel: there is no such field here; did you mean 'title'?",
        ),
        (changed("title:", "titel:"), "title: this field is missing; describe the scenario in a line"),
        (
            changed("h1-s1: {rate", "h1-s1: {rat"),
            "t.yaml:6:13: network.links.h1-s1.rat: there is no such field here; did you mean 'rate'?",
        ),
        (changed("bulk: {from", "bulk: {form"), "did you mean 'from'?"),
        (
            changed("{rate: 5mbit", "{rate: 5,5mbit"),
            "h1-s1.5mbit: a comma ends a value here; write a decimal with a point",
        ),
        (changed("{rate: 5mbit", "{rate: \u20185mbit\u2019"), "'\u20185mbit\u2019' is not a rate"),
        (
            changed("- bulk: {from: h1, to: h2, duration: 10s}", "- bulk:\n    from: h1\n    to: h2"),
            "traffic.0.from: there is no such field here; indent the line below its kind of traffic",
        ),
        (
            changed("- bulk: {", "  bulk: {"),
            "traffic: a mapping is not a list; begin each entry with `- `",
        ),
        (
            changed("h1-s1: {rate", "h1-s1: {bandwidth"),
            "h1-s1.bandwidth: there is no such field here; did you mean 'rate'?",
        ),
        (changed("h1-s1: {rate", "h1-s1: {latency: 5ms, rate"), "did you mean 'delay'?"),
        (
            changed("bulk: {from: h1, to: h2, duration: 10s", "transfer: {from: h1, to: h2, size: 1MB"),
            "did you mean 'bytes'?",
        ),
        (
            changed("bulk: {from: h1, to: h2, duration", "request: {from: h1, to: h2, size: 1MB, duration"),
            "did you mean 'response'?",
        ),
        (
            changed(
                "bulk: {from: h1, to: h2, duration: 10s",
                "request: {from: h1, to: h2, response: 1KB, count: 4",
            ),
            "after a number of requests (requests), after",
        ),
        (
            changed("h1-s1: {rate: 5mbit", "h1-s1: {rate: {forward: 5mbit}"),
            "rate: a mapping is not a rate; write for example 5mbit, or forward: {rate: ..} for one direction",
        ),
        (
            TWO + "h1-s1: {rate: 5mbit}\n",
            "h1-s1: there is no such field here; if it is a link, write network.links.h1-s1",
        ),
        (changed("bulk:", "bulq:"), "traffic.0.bulq: there is no such field here; did you mean 'bulk'?"),
        (
            changed(", duration: 10s", ""),
            "traffic.0.bulk: the flow ends after a duration or at a time (stop); write exactly one of them",
        ),
        (
            changed("  - bulk: {from: h1, to: h2, duration: 10s}\n", "  - {}\n"),
            "an entry of the traffic has exactly one kind; write bulk: {..}, transfer: {..}, ",
        ),
        (TWO + "repeat: 1.5\n", "t.yaml:12:1: repeat: 1.5 is not a whole number"),
        (TWO + "repeat: 0\n", "repeat: 0 is out of range; write at least 1"),
        (TWO + "repeat: true\n", "repeat: true is not a whole number"),
        (
            TWO + "pause: during\n",
            "t.yaml:12:1: pause.0: 'during' is not a valid value; use one of: after, before",
        ),
        (TWO + "vary: {pause: [before]}\n", "'pause' belongs to the whole study and cannot vary"),
        (TWO + "transport: mtcp\n", "transport: 'mtcp' is not a valid value; did you mean 'mptcp'?"),
        (TWO + "title: again\n", "t.yaml:12:1: title: this key occurs twice, first in line 1"),
        (TWO + "tcp: {congestion_control: not a name}\n", "cannot be a kernel name"),
        (TWO + "sysctls: {kernel.panic: 1}\n", "sysctls.kernel.panic: "),
        # units and bounds
        (
            changed("rate: 5mbit, delay: 5ms}\n    s1", "rate: 5, delay: 5ms}\n    s1"),
            "network.links.h1-s1.rate: 5 has no unit; write for example 5mbit",
        ),
        (changed("{rate: 5mbit, delay: 5ms}\n    s1", "{rate: -5mbit}\n    s1"), "'-5mbit' is negative"),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{rate: 5mbps}\n    s1"),
            "it could mean bits or bytes",
        ),
        (changed("{rate: 5mbit, delay: 5ms}\n    s1", "{rate: .nan}\n    s1"), "nan is not a rate"),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{delay: 90s}\n    s1"),
            "'90s' is out of range; write something from 0s to 60s",
        ),
        (changed("10s", "9" * 500 + "s"), "has too many digits"),
        (TWO + "repeat: " + "9" * 6000 + "\n", "repeat: "),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{queue: 10pkt}\n    s1"),
            "a link without a rate has no queue; add a rate",
        ),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{rate: 5mbit, queue: 1KB}\n    s1"),
            "less than one frame (1514 bytes)",
        ),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{delay: 5ms, jitter: 6ms}\n    s1"),
            "jitter is greater than the delay",
        ),
        # names
        (changed("[h1, h2]", "[h1, h2, h1]"), "network.hosts: 'h1' occurs twice"),
        (
            changed("[s1, s2]", "[s1, s2, h1]"),
            "t.yaml:4:22: network.switches.h1: 'h1' is also the name of one of the hosts",
        ),
        (
            changed("h1-s2", "h1-s1"),
            "h1-s1: this key occurs twice, first in line 6; remove one, or call a second link h1-s1#2",
        ),
        (
            TWO + "links: {}\n",
            "links: there is no such field here; links are below network: write network.links.NAME",
        ),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{upload: 5mbit}\n    s1"),
            "upload: there is no such field here; write forward: {rate: ..} for the direction from the first node",
        ),
        (
            changed("{rate: 5mbit, delay: 5ms}\n    s1", "{between: [h1, s1]}\n    s1"),
            "between: there is no such field here; the name of a link says its ends: write NODE-NODE, such as h1-s1",
        ),
        (TWO + "duration: 10s\n", "duration: there is no such field here; did you mean 'until'?"),
        (
            TWO + "transport: [tcp, mptcp]\n",
            "transport: one value is expected here; to compare several, write vary: {transport: [..]}",
        ),
        (changed("bulk", "download"), "download: there is no such field here; did you mean 'transfer'?"),
        (changed("h1-s2", "s1-h1"), "joins the same nodes as h1-s1; call a second link s1-h1#2"),
        (TWO.replace("h1", "h" * 33), "has 33 characters; a name has at most 32"),
        (TWO.replace("h1", "h 1"), "'h 1' cannot name a node"),
        (changed("[h1, h2]", "[1, h2]"), "t.yaml:3:11: network.hosts.1: '1' cannot name a node"),
        (TWO.replace("s1", "wire"), "'wire' is the name of a namespace of plait"),
        (changed("[h1, h2]", "h1"), "neither a list of names nor a mapping"),
        # references
        (
            changed("h1-s1", "h1-s9"),
            "t.yaml:6:5: network.links.h1-s9: no node is called 's9'; use one of: h1, h2, s1, s2",
        ),
        (changed("h1-s1", "h1s1"), "'h1s1' does not name a link; write NODE-NODE, such as h1-s1"),
        (changed("h1-s1", "h1-h1"), "joins h1 to itself"),
        (
            changed("to: h2", "to: h3"),
            "t.yaml:11:22: traffic.0.bulk.to: no host is called 'h3'; use one of: h1, h2",
        ),
        (changed("to: h2", "to: s1"), "no host is called 's1'"),
        (changed("to: h2", "to: h1"), "'h1' sends to itself"),
        (changed("10s}", "10s, via: s1-h2}"), "h1 has no link 's1-h2'; did you mean 'h1-s2'?"),
        (
            changed("10s}", "10s, via: 10.9.9.9}"),
            "traffic.0.bulk.via: no path from h1 to h2 goes via 10.9.9.9",
        ),
        (TWO + "mptcp: {limits: {h3: {subflows: 1}}}\n", "mptcp.limits.h3: no host is called 'h3'"),
        (TWO + "mptcp: {limits: {h1: {subflows: 9}}}\n", "9 is out of range; write at most 8"),
        (TWO + "mptcp: {endpoints: {h1: [{link: s1-h2, flags: [subflow]}]}}\n", "h1 has no link 's1-h2'"),
        (
            TWO + "mptcp: {endpoints: {h1: [{address: 10.9.9.9, flags: [subflow]}]}}\n",
            "h1 has no address 10.9.9.9; it has 10.0.0.1, 10.0.1.1",
        ),
        (
            TWO + "mptcp: {endpoints: {h1: [{flags: [subflow]}]}}\n",
            "an endpoint has either a link or an address",
        ),
        # what cannot be resolved
        (
            changed("    s1-h2: {rate: 5mbit, delay: 5ms}\n", "    s1-s2: {}\n    s1-s2#2: {}\n"),
            "t.yaml:8:5: network.links.s1-s2#2: this link closes a cycle of switches",
        ),
        (changed("[h1, h2]", "[h1, h2, h3]"), "t.yaml:3:19: network.hosts.h3: no link leads to 'h3'"),
        (
            changed("s1-h2: {rate: 5mbit, delay: 5ms}", "s1-h2: {mtu: 9000}"),
            "the MTU is 9000 here and 1500 on h1-s1",
        ),
    ],
)
def test_a_mistake_is_located_and_says_what_would_be_right(text: str, expected: str) -> None:
    assert expected in mistakes_as_text(text)


def test_hosts_without_a_path_and_hosts_without_links_give_different_messages() -> None:
    text = """\
title: t
network:
  hosts: [a, b, m]
  links: {a-m: {}, m-b: {}}
traffic:
- bulk: {from: a, to: b, duration: 1s}
"""
    assert "t.yaml:6:19: traffic.0.bulk.to: b cannot be reached from a" in mistakes_as_text(text)
    assert "declare nodes that forward under routers" in mistakes_as_text(text)


def test_a_name_with_dashes_that_can_be_read_twice_is_refused() -> None:
    text = "title: t\nnetwork: {hosts: [a, b-c, a-b, c], links: {a-b-c: {}}}\ntraffic: []\n"
    assert "'a-b-c' is ambiguous: a to b-c or a-b to c; rename a node" in mistakes_as_text(text)


def test_names_with_dashes_are_read_against_the_declared_nodes() -> None:
    text = "title: t\nnetwork: {hosts: [left-host, right-host], links: {left-host-right-host: {}}}\n"
    text += "traffic: [bulk: {from: left-host, to: right-host, duration: 1s}]\nrepeat: zero\n"
    assert [m.path for m in mistakes(text)] == ["repeat"]


def test_address_clashes_name_both_sides() -> None:
    clash = changed(
        "[h1, h2]", "{h1: {addresses: {h1-s1: 10.7.0.2/24}}, h2: {addresses: {s1-h2: 10.7.0.2/24}}}"
    )
    assert "10.7.0.2 is also the address of h1 on h1-s1" in mistakes_as_text(clash)
    overlap = changed("[h1, h2]", "{h1: {addresses: {h1-s1: 10.7.0.1/16, h1-s2: 10.7.3.1/24}}, h2: }")
    assert "the subnet 10.7.3.0/24 overlaps 10.7.0.0/16" in mistakes_as_text(overlap)
    differing = changed(
        "[h1, h2]", "{h1: {addresses: {h1-s1: 10.7.0.1/24}}, h2: {addresses: {s1-h2: 10.8.0.1/24}}}"
    )
    assert "'10.8.0.1/24' is not in 10.7.0.0/24" in mistakes_as_text(differing)
    small = changed("[h1, h2]", "{h1: {addresses: {h1-s1: 10.7.0.1/31}}, h2: }")
    assert "too small for the ports of its segment" in mistakes_as_text(small)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "300.1.1.1/24", "127.0.0.1/8", "224.0.0.1/24", "10.0.0.0/24", "x/24"]
)
def test_addresses_that_no_host_can_have_are_refused(address: str) -> None:
    assert "network.hosts.h1.addresses.h1-s1: " in mistakes_as_text(
        TWO, f"network.hosts.h1.addresses.h1-s1={address}"
    )


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    text = TWO.replace("h1-s1: {rate", "h1-s1: {rat").replace("to: h2, duration: 10s", "to: h3, duration: 10")
    text = text.replace("s2-h2", "s2-h9") + "repeat: 0\nvray: {}\n"
    assert [(m.line, m.path) for m in mistakes(text)] == [
        (6, "network.links.h1-s1.rat"),
        (9, "network.links.s2-h9"),
        (11, "traffic.0.bulk.to"),
        (11, "traffic.0.bulk.duration"),
        (12, "repeat"),
        (13, "vray"),
    ]


def test_a_wrong_field_does_not_make_its_surroundings_wrong() -> None:
    text = TWO.replace("duration: 10s", "duration: 10")
    assert [m.path for m in mistakes(text)] == ["traffic.0.bulk.duration"]
    endpoint = TWO + "mptcp: {endpoints: {h1: [{link: h1-s2, flags: [subfow]}]}}\n"
    assert [m.path for m in mistakes(endpoint)] == ["mptcp.endpoints.h1.0.flags.0"]


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert [m.path for m in mistakes("\ufeff" + TWO + "repeat: 0\n")] == ["repeat"]


def test_links_beyond_the_limit_are_not_read() -> None:
    links = "".join(f"    h{i}-s{i}: {{rate: 5mbit, delay: 10ms}}\n" for i in range(5000))
    text = f"title: x\nnetwork:\n  hosts: [a, b]\n  links:\n{links}    h5000-s5000: {{rate: [\n"
    (mistake,) = mistakes(text)
    assert str(mistake).endswith(":4101:5: network.links: there are more than 4096 entries here; use fewer")


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12)),
        "title: " + "[" * 100_000,
        "title: " + "x" * 2_000_000,
        "title: " + "x" * 100_000,
        "{" * 500 + "}" * 500,
        "k" * 1000 + ": 1\n",
        "".join(f"k{i}: 1\n" for i in range(50_000)),
    ],
    ids=["aliases of aliases", "nesting", "size", "scalar", "mappings", "key", "entries"],
)
def test_hostile_files_are_refused_in_little_time(text: str) -> None:
    began = time.process_time()
    assert len(mistakes(text)) <= 101
    assert time.process_time() - began < WORK_S


def test_thousands_of_mistakes_are_cut_to_a_readable_number() -> None:
    links = ", ".join(f"a-b#{i}: {{rate: {i}}}" for i in range(2, 2000))
    reported = mistakes(direct(links))
    assert len(reported) == 101
    assert "more mistakes" in str(reported[-1])


def test_an_alias_stands_for_its_value() -> None:
    text = TWO.replace("h1-s1: {rate: 5mbit, delay: 5ms}", "h1-s1: &fast {rate: 5mbit}")
    text = text.replace("s1-h2: {rate: 5mbit, delay: 5ms}", "s1-h2: *fast") + "repeat: 0\n"
    assert [m.path for m in mistakes(text)] == ["repeat"]


def test_mistakes_in_options_name_the_option() -> None:
    report = mistakes_as_text(
        TWO,
        "repeat=0",
        "foo",
        "=",
        "network.links.*.rate=7",
        "a.b=3",
        "title=[",
        "network.links.x-y.rate=1mbit",
    )
    assert "--set repeat=0: repeat: 0 is out of range" in report
    assert "--set foo: the option has no '='; write PATH=VALUE" in report
    assert "--set =: '' is not a path of fields" in report
    assert "--set network.links.*.rate=7: network.links.h1-s1.rate: 7 has no unit" in report
    assert "--set a.b=3: a: there is no such field here" in report
    assert "--set title=[: title: the value cannot be read" in report
    assert "--set network.links.x-y.rate=1mbit: network.links has no 'x-y'" in report


def test_a_varied_value_occurs_once_but_may_be_repeated_in_rows() -> None:
    """It was run as a further case, whose name ended in +2."""
    report = mistakes_as_text(TWO + "vary: {scheduler: [default, blest, default]}\n")
    assert "vary.scheduler.2: 'default' occurs twice; remove one" in report
    report = mistakes_as_text(TWO + "vary: {tcp.receive_buffer_max: [1MiB, 2MiB, 1024KiB]}\n")
    assert "vary.tcp.receive_buffer_max.2: '1024KiB' is the same as '1MiB'; remove one" in report
    rows = "vary: {zip: {scheduler: [blest, blest], transport: [tcp, mptcp]}}\n"
    assert [case.settings["transport"] for case in expand(parse(TWO + rows, "t.yaml"))] == ["tcp", "mptcp"]


def test_mistakes_under_vary_name_the_value() -> None:
    text = (
        TWO
        + """\
vary:
  transport: [tcp, udp]
  network.links.h1-*.rat: [1mbit]
  network.links.*.delay: [1ms, 5]
  network.links.h9-s1.rate: [1mbit]
  traffic.5.bulk.duration: [1s]
  repeat: [1, 2]
  scheduler: []
"""
    )
    report = mistakes_as_text(text)
    assert "t.yaml:19:3: vary.scheduler: there are 0 values; write at least 1" in report
    report = mistakes_as_text(text.replace("  scheduler: []\n", ""))
    assert "t.yaml:13:20: vary.transport.1: transport: 'udp' is not a valid value" in report
    assert (
        "t.yaml:14:28: vary.network.links.h1-*.rat.0: network.links.h1-s1.rat: there is no such field"
        in report
    )
    assert "t.yaml:15:32: vary.network.links.*.delay.1: network.links.h1-s1.delay: 5 has no unit" in report
    assert (
        "t.yaml:16:3: vary.network.links.h9-s1.rate: network.links has no 'h9-s1'; did you mean 'h1-s1'?"
        in report
    )
    assert (
        "t.yaml:17:3: vary.traffic.5.bulk.duration: traffic is a list; write the number of an entry, which is 0"
        in report
    )
    assert "t.yaml:18:3: vary.repeat: 'repeat' belongs to the whole study" in report


def test_mistakes_under_vary_are_reported_together_with_all_others() -> None:
    text = (
        TWO
        + "sampel: 1s\nvary:\n  transport: [tcp, udp]\n  network.links.*.delay: [1ms, 5]\n  scheduler: []\n"
    )
    report = mistakes_as_text(text)
    assert "sampel: there is no such field" in report
    assert "vary.scheduler: there are 0 values" in report
    assert "vary.transport.1: transport: 'udp' is not a valid value" in report
    assert "vary.network.links.*.delay.1: network.links.h1-s1.delay: 5 has no unit" in report


def test_values_for_a_field_that_is_wrong_itself_are_not_called_wrong() -> None:
    text = TWO.replace("repeat: 1\n", "") + "transport: udp\nvary:\n  transport: [tcp, mptcp]\n"
    report = mistakes_as_text(text)
    assert "transport: 'udp' is not a valid value" in report
    assert "vary" not in report.replace("t.yaml", "")


@pytest.mark.parametrize("rate", ["rat: 5mbit", "rate: -5mbit", "rate: 5Mbit/s"])
def test_a_wrong_rate_is_no_missing_one(rate: str) -> None:
    text = changed("{rate: 5mbit, delay: 5ms}\n    s1", f"{{{rate}, queue: 10pkt, aqm: codel}}\n    s1")
    assert [(mistake.path, "add a rate" in mistake.message) for mistake in mistakes(text)] == [
        (f"network.links.h1-s1.{rate.partition(':')[0]}", False)
    ]


def test_drop_tail_takes_no_options() -> None:
    text = changed("{rate: 5mbit, delay: 5ms}\n    s1", "{rate: 5mbit, aqm: {droptail: {limit: 5}}}\n    s1")
    assert [(mistake.path, mistake.message) for mistake in mistakes(text)] == [
        ("network.links.h1-s1.aqm.droptail", "drop-tail has no options; write aqm: droptail")
    ]
