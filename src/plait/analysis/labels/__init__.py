"""What people call the parts of a study: the labels of its scenario in place of names; data keep the names."""
