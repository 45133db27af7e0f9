"""What people read: the page, tables and sentences."""
