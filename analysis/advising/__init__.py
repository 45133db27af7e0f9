"""Where to start: learning rates and a rank from published rules and from one's own sweeps."""
