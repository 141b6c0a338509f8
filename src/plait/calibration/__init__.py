"""Calibration: measure each distinct chain of qdiscs of a study in the engine that will run it, before the study.

settings   the distinct link settings in the plans of a study
probes     the plan that measures several settings side by side with UDP packets
verdict    the comparison of measured and configured values, and its tolerances
words      the text of a setting and of a value out of tolerance
calibrate  run the probes, cache the figures, and refuse a link that is out of tolerance
"""
