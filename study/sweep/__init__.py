"""Claim, train in a child, publish: workers and the parent that watches them."""
