"""The framing of an Arrow IPC stream, as far as plait checks it before a library decodes the stream.

The agent never compresses. A guest that was taken over could write a compressed buffer that expands to any size, so
plait refuses compression instead of bounding it. Sources: Arrow columnar format, "Encapsulated message format" and
format/Message.fbs; FlatBuffers internals (tables and vtables).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

_CONTINUATION = 0xFFFFFFFF
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
"""Values of `MessageHeader`."""
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
"""Fields of `Message`."""
_DICTIONARY_DATA = 1
"""Field of `DictionaryBatch`: its record batch."""
_COMPRESSION = 3
"""Field of `RecordBatch`."""


def has_compression(stream: bytes) -> bool:
    """Return whether any buffer of the stream is compressed.

    Raises ValueError when the framing is damaged.
    """
    return any(compressed for _, compressed in _messages(stream))


def complete_part(stream: bytes) -> bytes:
    """Return the part of a growing stream that ends with its last complete message.

    Raises ValueError when the framing is damaged, or when a buffer is compressed.
    """
    messages = list(_messages(stream, growing=True))
    if any(compressed for _, compressed in messages):
        raise ValueError("a message is compressed")
    return stream[: messages[-1][0]] if messages else b""


def _messages(stream: bytes, *, growing: bool = False) -> Iterator[tuple[int, bool]]:
    """Yield where each message ends, and whether it is compressed; of a `growing` stream, the complete messages."""
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
            yield at, _is_compressed(metadata)
    except struct.error as error:
        raise ValueError(f"its framing is damaged ({error})") from error


def _is_compressed(message: bytes) -> bool:
    table = _root(message)
    kind = _read(message, table, _HEADER_TYPE, "<B")
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return False
    batch = _follow(message, table, _HEADER)
    if kind == _DICTIONARY_BATCH:
        batch = _follow(message, batch, _DICTIONARY_DATA)
    return _field(message, batch, _COMPRESSION) is not None


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
