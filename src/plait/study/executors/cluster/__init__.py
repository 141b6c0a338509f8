"""Trials on a Dask cluster: the connection, which workers may be used, and which batch goes to which of them."""
