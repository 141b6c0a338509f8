"""The identity of a trial: its plan as bytes, and the key of its entry in the store."""

from __future__ import annotations

import json
from hashlib import sha256

from plait.plan.model.plan import Plan


def plan_bytes(plan: Plan) -> bytes:
    """Return the plan as canonical JSON: sorted keys, no spaces, ASCII, the names of the contract."""
    value = plan.model_dump(mode="json", by_alias=True)
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def trial_identity(plan: Plan, *engine: str) -> str:
    """Return the identity of a trial: 64 hexadecimal digits. Equal identities give equal data.

    `engine`: the kernel's and the agent's identity, and what else of the engine determines the outcome.
    """
    parts = [b"plait trial 1", plan_bytes(plan), *(part.encode() for part in engine)]
    return sha256(b"\0".join(sha256(part).digest() for part in parts)).hexdigest()
