"""The engine `remote`: real hosts over SSH, on links as they are."""
