"""Derives the tables of an observation from packet captures of one end of connections, or of both.

packets   the TCP packets of a file, which tshark dissects
ends      which end each file is from
streams   ranges of sequence numbers
halves    one direction of a subflow
tracking  the subflows and connections of one end
rows      samples and tables
words     what captures show, in sentences
engine    all of it, as an engine
"""
