"""An event loop in a thread of its own: Dask's client and plait's dispatcher run there, beside the study's thread."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from concurrent.futures import Future

T = TypeVar("T")
_END_S = 60


class LoopThread:
    """A thread that runs an event loop until `close`."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="plait-cluster", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # Dask leaves coroutines of its own behind that failed; those of plait report their errors to the study.
        self._loop.set_exception_handler(lambda *_: None)
        self._loop.run_forever()

    def start(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine in the loop and return its future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine. If the wait is interrupted, cancel it."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[[], None]) -> None:
        """Call a function in the loop, soon."""
        self._loop.call_soon_threadsafe(function)

    def close(self) -> None:
        """End the loop, with what still runs in it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_END_S)
