"""What people see of a sweep in a terminal."""
