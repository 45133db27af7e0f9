"""Workers: processes that claim runs, train them in children and publish the results."""
