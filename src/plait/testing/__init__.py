"""What tests of the pipeline need: plans, believable fake data, and result folders, without a kernel."""
