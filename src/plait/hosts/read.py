"""Read hosts.yaml, and report all of its mistakes at once with their places."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from plait.errors import Mistake, ScenarioError
from plait.hosts.model import HostsFile
from plait.scenario.messages import mistakes_in
from plait.scenario.read.load import read_text
from plait.scenario.read.parse import read_located

_REMEDY = "start with limits: and hosts:; docs/how-to/real-hosts.md has an example"


def read_hosts(path: Path) -> HostsFile:
    """Return the content of a hosts file.

    Raises:
        ScenarioError: the file cannot be read, or has mistakes; the message lists each with its place.
    """
    return parse_hosts(read_text(path, str(path)), str(path))


def parse_hosts(text: str, name: str) -> HostsFile:
    """Return the content of a hosts file with this text; `name` is its name in messages. Raises ScenarioError."""
    value, source, mistakes = read_located(text, name)
    if not isinstance(value, dict):
        raise ScenarioError([*mistakes, Mistake(name, 1, 1, "", f"this is not a file of hosts; {_REMEDY}")])
    try:
        hosts = HostsFile.model_validate(value)
    except ValidationError as error:
        mistakes += [
            source.mistake(field, _hint(field, message)) for field, message in mistakes_in(error, HostsFile)
        ]
        raise ScenarioError(sorted(mistakes, key=lambda m: (m.line or 0, m.column or 0))) from error
    if mistakes:
        raise ScenarioError(mistakes)
    return hosts


def _hint(field: tuple[str | int, ...], message: str) -> str:
    """Return the message for a missing field with an example of this file."""
    hint = _HINTS.get(str(field[-1]) if field else "")
    if hint is None or not message.startswith("this field is missing"):
        return message
    return f"this field is missing; {hint}"


_HINTS = {
    "limits": "state what hosts may send, for example limits: {rate: 50mbit, bytes: 1GB, time: 10min}",
    "rate": "state at which rate a host may send, for example rate: 50mbit",
    "bytes": "state how much a host may send, for example bytes: 1GB",
    "time": "state how long hosts may send, for example time: 600s",
    "hosts": "write for example hosts: {h1: {ssh: user@h1.example.org, addresses: {h1-h2: 192.0.2.1}}, h2: ..}",
    "ssh": "write the destination for ssh, for example ssh: user@h1.example.org",
    "local": "write the address of the host's own interface, for example {local: 10.0.1.5, public: 198.51.100.20}",
    "public": "write the address that the other side connects to, or public: none if it can reach this host at none",
    "addresses": "write the address on each link, for example addresses: {h1-h2: 192.0.2.1}",
}
