"""Numbers first, then pixels: one module a figure."""
