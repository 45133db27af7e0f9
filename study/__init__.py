"""Sweeps of LoRA and full fine-tuning RL runs: everything that writes ``runs/``."""
