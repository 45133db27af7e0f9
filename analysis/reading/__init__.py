"""What a sweep left behind, as frames: experiment directories and other people's sweeps."""
