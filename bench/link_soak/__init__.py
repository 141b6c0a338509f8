"""What `bench/soak_links.py` runs in the guest: networks, what changes them, and their load."""
