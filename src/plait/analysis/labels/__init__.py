"""Labels of the parts of a study: the labels of its scenario in place of names; data keep the names."""
