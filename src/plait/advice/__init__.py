"""Tries, in the laboratory, what a person can change on hosts with several lines, and advises what helps.

situation    the two hosts of a scenario, and the lines between them
goals        what the lines are for: traffic, and the metric that judges it
changes      what each kind of change sets: settings of the scenario, commands on a host, and their undo
candidates   the registry of these kinds with their causes, and the candidates of a situation
search       more and more seeds for fewer and fewer candidates, then lines that are worse
result       the typed result: which candidates are better, and which are as good as the best
words        the advice as a table and sentences
calls        `plait.advise`, for Python
"""
