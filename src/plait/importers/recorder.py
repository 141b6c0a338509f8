"""A program that runs in a guest: it builds the Mininet topology of a Python file and prints it as JSON.

Usage: `python3 recorder.py FILE [CLASS]`. If Mininet is not installed, a small class replaces its `Topo`.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from typing import Any


class _Topo:
    """The part of `mininet.topo.Topo` that describes a topology."""

    def __init__(self, *args: Any, **params: Any) -> None:
        self._nodes: dict[str, dict[str, Any]] = {}
        self._links: list[tuple[str, str, dict[str, Any]]] = []
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """Describe the topology; subclasses override it."""

    def addNode(self, name: str, **options: Any) -> str:  # noqa: N802 - Mininet's name
        self._nodes[name] = options
        return name

    def addHost(self, name: str, **options: Any) -> str:  # noqa: N802
        return self.addNode(name, **options)

    def addSwitch(self, name: str, **options: Any) -> str:  # noqa: N802
        return self.addNode(name, isSwitch=True, **options)

    def addLink(self, *ends: Any, **options: Any) -> None:  # noqa: N802
        self._links.append((ends[0], ends[1], {**self.lopts, **options}))  # further arguments are ports

    def nodes(self) -> list[str]:
        return list(self._nodes)

    def nodeInfo(self, name: str) -> dict[str, Any]:  # noqa: N802
        return self._nodes[name]

    def links(self, **_: Any) -> list[tuple[str, str, dict[str, Any]]]:
        return self._links


class _Anything(types.ModuleType):
    """A missing module of Mininet: each of its attributes is a class that does nothing."""

    __path__: list[str] = []  # noqa: RUF012 - what makes it a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__init__": lambda *_, **__: None})


def _topo_class() -> type:
    try:
        from mininet.topo import Topo  # type: ignore[import-not-found]  # few machines have it
    except ImportError:
        for name in ("", ".topo", ".net", ".node", ".nodelib", ".link", ".log", ".cli", ".util", ".topolib"):
            module = _Anything(f"mininet{name}")
            sys.modules[module.__name__] = module
        sys.modules["mininet.topo"].Topo = _Topo  # type: ignore[attr-defined]  # the module made above
        return _Topo
    return Topo  # type: ignore[no-any-return]  # as above


def _candidates(path: str, base: type) -> dict[str, Any]:
    """Return the topologies in the file: its `topos`, as `mn --custom` expects them, or its classes."""
    spec = importlib.util.spec_from_file_location("imported", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["imported"] = module
    spec.loader.exec_module(module)
    named = getattr(module, "topos", None)
    if isinstance(named, dict) and named:
        return named
    return {
        name: candidate
        for name, candidate in vars(module).items()
        if isinstance(candidate, type) and issubclass(candidate, base) and candidate.__module__ == "imported"
    }


def _plain(options: dict[str, Any]) -> dict[str, Any]:
    return {
        k: v if isinstance(v, (int, float, str, bool)) or v is None else str(v) for k, v in options.items()
    }


def main() -> None:
    """Print the topology, or `{"classes": [..]}` if the file has several and CLASS selects none."""
    path, wanted = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
    candidates = _candidates(path, _topo_class())
    if wanted not in candidates and (wanted or len(candidates) != 1):
        print(json.dumps({"classes": sorted(candidates)}))
        return
    topo = candidates[wanted or next(iter(candidates))]()
    nodes = [
        (name, bool(topo.nodeInfo(name).get("isSwitch")), _plain(topo.nodeInfo(name)))
        for name in topo.nodes()
    ]
    links = [(node, peer, _plain(info)) for node, peer, info in topo.links(withInfo=True)]
    print("\n" + json.dumps({"nodes": nodes, "links": links}))


if __name__ == "__main__":
    main()
