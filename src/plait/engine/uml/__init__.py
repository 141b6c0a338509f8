"""Guests of User-Mode Linux: started in a sandbox, watched, talked to, and read when they end."""
