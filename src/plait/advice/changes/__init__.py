"""What a person can change on two hosts: functions that yield the candidates of each kind, with their commands."""
