"""Calibration: each distinct setting of a link is measured in the engine that will run it, before the study.

settings   which settings the plans of a study have (pure)
probes     the plan that measures some of them side by side, with UDP packets (pure)
verdict    what was measured against what is configured, and how far apart they may be (pure)
words      a setting, and a figure out of its bounds, as a person reads them (pure)
calibrate  running the probes, remembering their figures, refusing a link that is out of its bounds
"""
