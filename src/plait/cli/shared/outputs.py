"""Output files that the user names: plait opens them before the work, so that later changes cannot redirect them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.errors import RequestError
from plait.files import Folder, Output

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path


def output_file(path: Path, option: str, *, new: bool = False, shared: Collection[Path] = ()) -> Output:
    """Return the file that the user named with `option`; `new`: it must not exist (RequestError).

    `shared`: the folders that a guest may change.
    """
    try:
        output = Output.at(path, shared=shared)
        exists = output.exists()
    except FileNotFoundError as error:
        raise RequestError(f"writing {path}: there is no folder {path.parent}; create it first") from error
    except OSError as error:
        raise _refused(path, option, error) from error
    if new and exists:
        raise RequestError(
            f"writing {path}: the file exists and may hold changes of yours; remove it, or choose another {option}"
        )
    return output


def output_folder(path: Path, option: str, *, shared: Collection[Path] = ()) -> Folder:
    """Return the folder that the user named with `option`, created if missing (RequestError)."""
    try:
        return Folder.hold(path, make=True, shared=shared)
    except OSError as error:
        raise _refused(path, option, error) from error


def write_output(output: Output, option: str, content: bytes, *, new: bool = False) -> None:
    """Write the file; `new`: only if it does not exist by now either (RequestError)."""
    try:
        output.write(content, keep=new)
    except OSError as error:
        raise _refused(output.folder.path / output.name, option, error) from error


def _refused(path: Path, option: str, error: OSError) -> RequestError:
    return RequestError(f"writing {path}: {error.strerror}; choose another {option}")
