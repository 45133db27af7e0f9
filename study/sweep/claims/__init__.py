"""Who works on what, kept in an Optuna storage."""
