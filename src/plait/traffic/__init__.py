"""The kinds of traffic: a file for each, with what people write, what a plan holds, estimates, metrics and words."""
