"""The commands of ``analysis``: one module each, named after the command.

A command module has ``HELP`` (one line), ``EXAMPLES`` (lines for the epilog), ``add_arguments`` and
``run``; it raises ``ValueError`` for input that cannot be used.
"""
