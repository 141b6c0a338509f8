"""The laboratory kernel: found in the cache, or built once from a Linux source tree, a few patches and a configuration.

    source tree --+
    patches ------+--> identity --> cache/kernels/<identity>/{linux, config, build.json}
    configuration +

What goes into a kernel beside its source lies in the folder `kernel/` of the repository. Running the kernel is the
engine's business (`plait.engine.uml.trial`).
"""

from __future__ import annotations

from plait.kernel.cache import find, list_built
from plait.kernel.model import Kernel, Progress
from plait.kernel.obtain import built_by_default, ensure

__all__ = ["Kernel", "Progress", "built_by_default", "ensure", "find", "list_built"]
