"""Where `make setup` leaves plait's own programs."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "_bin"
AGENT = _FOLDER / "plait-agent"
"""The one program inside the guest."""
CONTAIN = _FOLDER / "plait-contain"
"""The launcher of the guest's sandbox."""
