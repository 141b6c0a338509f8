"""Where `make setup` leaves plait's own programs."""

from __future__ import annotations

from pathlib import Path

PROGRAMS = Path(__file__).parent / "_bin"
"""The folder of plait's own programs."""
AGENT = PROGRAMS / "plait-agent"
"""The one program inside the guest."""
CONTAIN = PROGRAMS / "plait-contain"
"""The launcher of the guest's sandbox."""
