"""The framing of an Arrow IPC stream, as far as plait checks it before a library decodes the stream.

A guest that was taken over, or a remote host, could write a stream of megabytes that holds terabytes: compressed
buffers, dictionaries and views that repeat one text in each row, buffers that several columns share. The agent writes
none of these, and plait refuses them, so that a table is never larger than its stream. Sources: Arrow columnar format,
"Encapsulated message format", format/Message.fbs and Schema.fbs; FlatBuffers internals (tables, vtables, vectors).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_CONTINUATION = 0xFFFFFFFF
_SCHEMA, _RECORD_BATCH = 1, 3
"""Values of `MessageHeader`."""
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
"""Fields of `Message`."""
_FIELDS = 1
"""Field of `Schema`."""
_TYPE_TYPE, _DICTIONARY, _CHILDREN = 2, 4, 5
"""Fields of `Field`."""
_PLAIN = frozenset({2, 3, 5, 6, 20})
"""Values of `Type` whose rows share nothing: Int, FloatingPoint, Utf8, Bool, LargeUtf8."""
_BUFFERS, _COMPRESSION = 2, 3
"""Fields of `RecordBatch`."""
_MOST_COLUMNS = 100
_MOST_BUFFERS = 3 * _MOST_COLUMNS


class ForeignStreamError(ValueError):
    """A stream holds what the agent never writes, and so may hold more than its bytes; the message is a predicate."""


def check_stream(stream: bytes) -> None:
    """Raise ForeignStreamError if the agent cannot have written the stream, ValueError if its framing is damaged."""
    for _ in _ends(stream):
        pass


def complete_part(stream: bytes) -> bytes:
    """Return the part of a growing stream that ends with its last complete message (ValueError as `check_stream`)."""
    ends = list(_ends(stream, growing=True))
    return stream[: ends[-1]] if ends else b""


def _ends(stream: bytes, *, growing: bool = False) -> Iterator[int]:
    """Yield where each message ends, once it is checked; of a `growing` stream, the complete messages."""
    at = 0
    try:
        while (at + 8 <= len(stream)) if growing else (at < len(stream)):
            mark, length = struct.unpack_from("<Ii", stream, at)
            if mark != _CONTINUATION or length < 0:
                raise ValueError("a message does not begin with the continuation mark and a length")
            metadata = stream[at + 8 : at + 8 + length]
            if length == 0 or (growing and len(metadata) < length):
                return
            body = _read(metadata, _root(metadata), _BODY_LENGTH, "<q")
            if body < 0:
                raise ValueError("the length of a message is negative")
            at += 8 + length + body
            if growing and at > len(stream):
                return
            _check(metadata, body)
            yield at
    except struct.error as error:
        raise ValueError(f"its framing is damaged ({error})") from error


def _check(message: bytes, body: int) -> None:
    """Raise ForeignStreamError if a message is none of the agent's, or its rows take more than its `body`."""
    table = _root(message)
    kind = _read(message, table, _HEADER_TYPE, "<B")
    header = _follow(message, table, _HEADER)
    if kind == _SCHEMA:
        first, count = _vector(message, header, _FIELDS, _MOST_COLUMNS)
        for at in range(first, first + 4 * count, 4):
            _check_column(message, at + struct.unpack_from("<I", message, at)[0])
    elif kind == _RECORD_BATCH:
        if _field(message, header, _COMPRESSION) is not None:
            raise ForeignStreamError("is compressed")
        first, count = _vector(message, header, _BUFFERS, _MOST_BUFFERS)
        numbers = struct.unpack_from(f"<{2 * count}q", message, first)
        taken = 0
        for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
            if length and not taken <= offset <= offset + length <= body:
                raise ForeignStreamError("has columns that share bytes, or more bytes than there are")
            taken = offset + length if length else taken
    else:
        raise ForeignStreamError("has dictionaries")


def _check_column(message: bytes, column: int) -> None:
    kind = _read(message, column, _TYPE_TYPE, "<B")
    has_dictionary = _field(message, column, _DICTIONARY) is not None
    if kind not in _PLAIN or has_dictionary or _vector(message, column, _CHILDREN, _MOST_COLUMNS)[1]:
        raise ForeignStreamError("has a column that is neither of numbers, nor of texts, nor of truth values")


def _vector(message: bytes, table: int, number: int, most: int) -> tuple[int, int]:
    """Return where the elements of a vector begin, and how many there are; none if the table does not have it."""
    if _field(message, table, number) is None:
        return 0, 0
    at = _follow(message, table, number)
    (count,) = struct.unpack_from("<I", message, at)
    if count > most:
        raise ForeignStreamError(f"lists {count} columns or buffers, more than any table has")
    return at + 4, count


def _root(message: bytes) -> int:
    return int(struct.unpack_from("<I", message, 0)[0])


def _field(message: bytes, table: int, number: int) -> int | None:
    """Return the position of a table's field; None if the table does not have it."""
    vtable = table - struct.unpack_from("<i", message, table)[0]
    if vtable < 0:
        raise ValueError("a vtable lies before its message")
    (size,) = struct.unpack_from("<H", message, vtable)
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", message, vtable + entry)[0] if entry < size else 0
    return table + offset if offset else None


def _read(message: bytes, table: int, number: int, form: str) -> int:
    at = _field(message, table, number)
    return 0 if at is None else int(struct.unpack_from(form, message, at)[0])


def _follow(message: bytes, table: int, number: int) -> int:
    at = _field(message, table, number)
    if at is None:
        raise ValueError("a message has no header")
    return at + int(struct.unpack_from("<I", message, at)[0])
