"""Calibration: each distinct setting of a link is measured in the engine that will run it, before the study.

settings   which settings the plans of a study have (pure)
probes     the plan that measures some of them side by side, with UDP packets (pure)
verdict    what was measured against what was meant, and how far apart they may be (pure)
calibrate  running the probes, remembering what they found, refusing what is not as it was meant
"""
