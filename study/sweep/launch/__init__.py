"""From a command line to a checked plan, and the mirror beside the workers."""
