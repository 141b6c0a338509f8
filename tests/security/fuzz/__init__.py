"""The fuzzer damages plait's input from a seed and judges the reaction."""
