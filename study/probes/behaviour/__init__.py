"""What training did to a model's answers: how many are right, how many differ, how far they moved.

:mod:`.result` documents what is measured.
"""
