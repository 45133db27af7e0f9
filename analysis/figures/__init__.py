"""Figures: numbers first, as frozen dataclasses that tests check, then axes.

A module that exports ``FIGURE`` is a figure of the report (see :mod:`analysis.figures.spec`): a new
figure is one new file. ``style.mplstyle`` serves any other plot: ``plt.style.use(path)``.
"""
