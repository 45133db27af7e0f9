"""Search modes: which runs come next, and which end early."""
