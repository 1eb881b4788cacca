"""Machines that join this one's queue: what is done from here, and what is done there."""
