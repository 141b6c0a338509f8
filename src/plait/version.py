"""The version of plait, and what to do about a record of another one."""

__version__ = "0.1.0"


def other_version(made_by: object) -> str:
    """Return what to do with a record that plait `made_by` made and this one cannot read; empty if this one made it."""
    if not isinstance(made_by, str) or not made_by or made_by == __version__:
        return ""
    return f"made by plait {made_by[:40]}; this is {__version__}: install that version"
