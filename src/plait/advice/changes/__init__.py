"""What a person can change on two hosts: a file for each kind of change, with what it needs."""
