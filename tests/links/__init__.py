"""The links of the laboratory kernel against a model of them."""
