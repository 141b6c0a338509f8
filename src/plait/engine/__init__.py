"""What executes one plan: the interface of all engines, and the User-Mode Linux engine.

Which plans run, and in which order, is decided in `plait.study`.
"""
