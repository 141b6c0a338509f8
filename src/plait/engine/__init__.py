"""Executes one plan: the interface of all engines, and the User-Mode Linux engine.

`plait.study` decides which plans run, and in which order.
"""
