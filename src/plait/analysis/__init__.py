"""The analysis: metrics of a trial, summaries of a study, comparisons. Pure functions over tables and plans."""
