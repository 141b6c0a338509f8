"""The laboratory kernel: from the cache, from the package `plait-kernel`, or built once from a Linux source tree.

    source tree --+
    patches ------+--> identity --> cache/kernels/<identity>/{linux, config, build.json}
    configuration +                          ^
    the installed package `plait-kernel` ----+

The folder `kernel/` of the repository holds the patches, the configuration and the added sources. The engine runs the
kernel (`plait.engine.virtual.trial`).
"""

from __future__ import annotations

from plait.kernel.cache import list_built
from plait.kernel.model import Kernel, Progress
from plait.kernel.obtain import built_by_default, ensure
from plait.kernel.packaged import find

__all__ = ["Kernel", "Progress", "built_by_default", "ensure", "find", "list_built"]
