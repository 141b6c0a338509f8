"""Executors of the trials of a study: threads, or any `concurrent.futures.Executor`."""
