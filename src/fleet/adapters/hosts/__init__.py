"""Other machines: a shell there, and what is sent to them."""
