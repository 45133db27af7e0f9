"""A foreign sweep -> an experiment directory: map, resolve, group into arms, write, in this order.

:mod:`~analysis.reading.importing.resolve` states the rule for every kind of row that is no result.
"""
