"""The studies whose metrics are recomputed: each is small, and together they have every metric that plait has."""

from __future__ import annotations

TWO_PATHS = """network:
  hosts: [h1, h2]
  switches: [s1, s2]
  links:
    h1-s1: {rate: 5mbit, delay: 5ms}
    s1-h2: {rate: 5mbit, delay: 5ms}
    h1-s2: {rate: 3mbit, delay: 20ms}
    s2-h2: {rate: 3mbit, delay: 20ms}
"""

THREE_PATHS = """network:
  hosts: [h1, h2]
  switches: [s1, s2]
  links:
    h1-s1: {rate: 5mbit, delay: 5ms}
    s1-h2: {rate: 5mbit, delay: 5ms}
    h1-s2: {rate: 3mbit, delay: 20ms, loss: 1%}
    s2-h2: {rate: 3mbit, delay: 20ms, jitter: 2ms}
    h1-h2: {rate: 2mbit, delay: 10ms}
"""

STUDIES = {
    "bulk": f"""title: One flow, TCP or MPTCP
{TWO_PATHS}traffic:
  - bulk: {{from: h1, to: h2, duration: 3s}}
vary: {{transport: [tcp, mptcp]}}
measure: {{from: 510ms, to: -230ms}}
monitors: {{ping: 100ms}}
""",
    "schedulers": f"""title: One download, with several schedulers
{TWO_PATHS}mptcp: {{capped: {{extra: 5%}}}}
traffic:
  - bulk: {{from: h1, to: h2, duration: 3s, reverse: true}}
vary:
  cases:
    - {{scheduler: capped}}
    - {{scheduler: redundant}}
    - {{scheduler: default, network.links.h1-s2.loss: 2%}}
    - {{scheduler: roundrobin, sample: 10ms}}
""",
    "groups": """title: Groups of flows on shared links
network:
  hosts: [a, b, c]
  routers: [r1, r2]
  links:
    a-r1: {rate: 6mbit, delay: 2ms}
    a-r2: {rate: 4mbit, delay: 2ms}
    b-r2: {rate: 8mbit, delay: 2ms}
    r1-c: {rate: 5mbit, delay: 5ms}
    r2-c: {rate: 5mbit, delay: 15ms}
traffic:
  - bulk: {from: a, to: c, duration: 3s, users: 2, group: multi, transport: [mptcp, tcp]}
  - bulk: {name: one, from: b, to: c, duration: 3s, count: 2, group: single, transport: tcp}
measure: {from: 1s}
""",
    "transfers": f"""title: Several transfers
{TWO_PATHS}traffic:
  - transfer: {{name: file, from: h1, to: h2, bytes: 600KB, back: 80KB, first: 100B, gap: 200ms}}
  - transfer: {{name: next, from: h1, to: h2, bytes: 300KB, after: file, rounds: 2, round_gap: 100ms, group: g}}
  - transfer: {{name: down, from: h2, to: h1, bytes: 500KB, reverse: true, transport: tcp, start: 300ms, group: g}}
  - bulk: {{name: cross, from: h1, to: h2, background: true, via: h1-s2, transport: tcp}}
measure: {{from: 200ms}}
""",
    "single": f"""title: One flow of each other kind
{TWO_PATHS}traffic:
  - transfer: {{from: h1, to: h2, bytes: 1MB}}
vary:
  traffic.0:
    - transfer: {{from: h1, to: h2, bytes: 1MB}}
    - stream: {{from: h1, to: h2, message: 4KB, every: 20ms, duration: 2s}}
    - request: {{from: h1, to: h2, response: 30KB, requests: 10}}
    - page: {{from: h1, to: h2, objects: [50KB, 5x 20KB], connections: 1}}
    - udp: {{from: h1, to: h2, packet: 1000B, rate: 4mbit, duration: 1s, back: true}}
""",
    "messages": f"""title: Streams, requests, pages and packets
{TWO_PATHS}traffic:
  - stream: {{name: video, from: h2, to: h1, reverse: true, message: 4KB, rate: 1mbit, duration: 2s}}
  - on-off:
      {{name: talk, from: h1, to: h2,
       'on': exponential 300ms, 'off': 200ms, rate: 500kbit, message: 500B, duration: 2s}}
  - on-off: {{name: burst, from: h1, to: h2, 'on': 100ms, 'off': 400ms, duration: 1s, send_buffer: 32KiB}}
  - request: {{name: ask, from: h1, to: h2, response: 20KB, requests: 8, gap: 50ms}}
  - request: {{name: open, from: h1, to: h2, response: 10KB, every: exponential 150ms, duration: 2s, transport: tcp}}
  - page: {{name: site, from: h1, to: h2, objects: [50KB, 10x 15KB], connections: 3, transport: tcp, rounds: 2}}
  - udp: {{name: call, from: h1, to: h2, packet: 200B, every: 20ms, duration: 2s, back: true}}
monitors: {{ping: {{every: 200ms, bytes: 100}}}}
""",
    "background": f"""title: A transfer beside flows in the background
{THREE_PATHS}traffic:
  - transfer: {{name: file, from: h1, to: h2, bytes: 2MB}}
  - bulk: {{name: noise, from: h1, to: h2, duration: 3s, background: true}}
  - bulk: {{name: tcp, from: h1, to: h2, duration: 3s, background: true, via: h1-s2, transport: tcp}}
  - udp: {{name: voice, from: h1, to: h2, packet: 200B, every: 20ms, duration: 1s, background: true}}
  - request: {{name: ask, from: h1, to: h2, response: 20KB, requests: 4, background: true, transport: tcp}}
measure: {{from: 300ms}}
""",
    "failing": f"""title: A path goes, and a flow with it
{THREE_PATHS}traffic:
  - transfer: {{name: file, from: h1, to: h2, bytes: 1500KB}}
  - udp: {{name: voice, from: h1, to: h2, packet: 200B, every: 20ms, duration: 3s, back: true}}
  - stream: {{name: live, from: h1, to: h2, message: 1KB, every: 10ms, duration: 2s, transport: tcp}}
events:
  - {{at: 1s, down: h1-s1}}
until: 5s
monitors: {{ping: 100ms}}
measure: {{from: 300ms}}
""",
    "iperf3": f"""title: iperf3 over TCP, MPTCP and UDP
{TWO_PATHS}programs:
  - {{name: server, node: h2, run: [iperf3, -s, '-1', -J], ready: {{tcp: 5201}}}}
  - {{name: other, node: h2, run: [iperf3, -s, '-1', -J, -p, '5202'], ready: {{tcp: 5202}}}}
  - {{name: client, node: h1, run: [iperf3, -c, h2, -J, -t, '3', -P, '2'], after: server, wait: true, result: iperf3}}
  - name: packets
    node: h1
    run: [iperf3, -c, h2, -u, -b, 4M, -J, -t, '1', -p, '5202']
    after: [other, client]
    wait: true
    result: iperf3
vary: {{programs.*.transport: [tcp, mptcp]}}
measure: {{from: 500ms}}
""",
}
