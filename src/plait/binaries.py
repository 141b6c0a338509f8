"""Where `make setup` leaves plait's own programs."""

from __future__ import annotations

import hashlib
from pathlib import Path

from plait.errors import MachineError

PROGRAMS = Path(__file__).parent / "_bin"
"""The folder of plait's own programs."""
AGENT = PROGRAMS / "plait-agent"
"""The one program inside the guest."""
CONTAIN = PROGRAMS / "plait-contain"
"""The launcher of the guest's sandbox."""


def agent_bytes(path: Path = AGENT) -> bytes:
    """Return the agent (MachineError if it is missing)."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise MachineError(f"reading {path}: {error.strerror}; run `make setup`") from error


def agent_sha256() -> str:
    """Return the agent's part of the identity of trials (MachineError if it is missing)."""
    return hashlib.sha256(agent_bytes()).hexdigest()
