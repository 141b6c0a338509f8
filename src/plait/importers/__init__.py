"""Convert topologies of Mininet and minitopo to scenarios; comments list what could not be carried over."""
