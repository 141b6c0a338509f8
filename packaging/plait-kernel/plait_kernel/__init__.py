"""The laboratory kernel of plait, as data: plait unpacks it into its cache. Nothing here runs."""
