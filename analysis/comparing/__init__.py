"""Two experiments side by side: what differs, which arms match, what carries over."""
