"""Hydra's ``-m`` with our sweeper, and launchers that start its workers here, by SLURM or by Ray.

Hydra imports every module here at each start unless its name begins with an underscore.
"""
