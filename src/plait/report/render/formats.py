"""Sizes and bytes of drawings: SVG in millimetres or points, and SVG and PDF that depend on their content alone.

The renderer writes the objects of a PDF in the order of a hash table, which changes. `canonical` sorts the names in
resource dictionaries and renumbers all objects in the order in which the page refers to them. Nothing that is drawn
changes.
"""

from __future__ import annotations

import re

_SIZE = re.compile(r'(<svg[^>]*?) width="([\d.]+)(?:mm)?" height="([\d.]+)(mm|)"')
_GIVEN_NAME = re.compile(r"""(id="|url\(#|href="#)((clip|gradient_?)\d+)(["\)])""")
_PATH = re.compile(r' d="[^"]*"')
_LONG_NUMBER = re.compile(r"(\d\.\d\d)\d+")
_HEADER = b"%PDF-1.7\n%\x80\x80\x80\x80\n\n"
_OBJECT = re.compile(rb"\s*(\d+) 0 obj\n")
_LENGTH = re.compile(rb"/Length (\d+)")
_REFERENCE = re.compile(rb"\b(\d+) 0 R\b")
_NAMES = re.compile(rb"(?:[ ]+/[a-zA-Z]+\d+ (?:\d+ 0 R|\[[^\]\n]*\])\n){2,}")
_ROOT = re.compile(rb"/Root (\d+) 0 R")


def width_of(svg: str) -> float | None:
    """Return the width of a drawing in its own unit; None of one without a size."""
    size = _SIZE.search(svg)
    return None if size is None else float(size[2])


def scaled(svg: str, width_mm: float) -> str:
    """Return the drawing scaled to a width of `width_mm`; its height keeps the proportion."""
    return _resized(svg, width_mm, "mm")


def in_points(svg: str) -> str:
    """Return a drawing sized in millimetres as one in points without a unit, as makers of PDF and PNG take it."""
    size = _SIZE.search(svg)
    if size is None or size[4] != "mm":
        return svg
    return _resized(svg, float(size[2]) * 72 / 25.4, "")


def _resized(svg: str, width: float, unit: str) -> str:
    match = _SIZE.search(svg)
    if match is None:
        return svg
    height = float(match[3]) * width / float(match[2])
    size = f'{match[1]} width="{width:.6g}{unit}" height="{height:.6g}{unit}"'
    return svg[: match.start()] + size + svg[match.end() :]


def short_paths(svg: str) -> str:
    """Return the drawing with the coordinates of its lines to a hundredth of a pixel, in half the bytes."""
    return _PATH.sub(lambda path: _LONG_NUMBER.sub(r"\1", path[0]), svg)


def stable_names(svg: str) -> str:
    """Return the drawing with clips and gradients numbered from 0: Vega continues those of the previous figure."""
    numbers: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        name = numbers.setdefault(match[2], f"{match[3]}{len(numbers)}")
        return f"{match[1]}{name}{match[4]}"

    return _GIVEN_NAME.sub(renamed, svg)


def canonical(pdf: bytes) -> bytes:
    """Return the same document with bytes that depend on its content alone.

    Of a document that is not as the renderer writes it, nothing is changed.
    """
    objects, end = _objects(pdf)
    root = _ROOT.search(pdf, end)
    if root is None or int(root[1]) not in objects:
        return pdf
    order = _order(objects, int(root[1]))
    if any(number not in objects for number in order):
        return pdf
    numbers = {old: new for new, old in enumerate(order, 1)}
    document = bytearray(_HEADER)
    places = []
    for old in order:
        head, rest = objects[old]
        places.append(len(document))
        head = _REFERENCE.sub(lambda reference: b"%d 0 R" % numbers[int(reference[1])], head)
        document += b"%d 0 obj\n%s%s\nendobj\n\n" % (numbers[old], head, rest)
    start = len(document)
    document += b"xref\n0 %d\n0000000000 65535 f \n" % (len(order) + 1)
    document += b"".join(b"%010d 00000 n \n" % place for place in places)
    document += b"trailer\n<<\n  /Size %d\n  /Root 1 0 R\n>>\nstartxref\n%d\n%%%%EOF" % (
        len(order) + 1,
        start,
    )
    return bytes(document)


def _objects(pdf: bytes) -> tuple[dict[int, tuple[bytes, bytes]], int]:
    """Return each object by its number, as its dictionary and its stream, and where the last one ends."""
    objects: dict[int, tuple[bytes, bytes]] = {}
    position = pdf.find(b"\n\n")
    while (begin := _OBJECT.match(pdf, position)) is not None:
        stream, end = pdf.find(b"\nstream\n", begin.end()), pdf.find(b"\nendobj", begin.end())
        if 0 <= stream < end:
            length = _LENGTH.search(pdf, begin.end(), stream)
            if length is None:
                break
            end = pdf.find(b"\nendobj", stream + len(b"\nstream\n") + int(length[1]))
            head, rest = pdf[begin.end() : stream], pdf[stream:end]
        else:
            head, rest = pdf[begin.end() : end], b""
        head = _NAMES.sub(lambda names: b"".join(sorted(names[0].splitlines(keepends=True))), head)
        objects[int(begin[1])] = head, rest
        position = end + len(b"\nendobj")
    return objects, position


def _order(objects: dict[int, tuple[bytes, bytes]], root: int) -> list[int]:
    """Return the numbers of all objects in the order in which they are met from the root on."""
    order: list[int] = []
    waiting = [root]
    known = {root}
    while waiting:
        number = waiting.pop(0)
        order.append(number)
        for reference in _REFERENCE.finditer(objects.get(number, (b"", b""))[0]):
            if (target := int(reference[1])) not in known:
                known.add(target)
                waiting.append(target)
    return order
