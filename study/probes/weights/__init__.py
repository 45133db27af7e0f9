"""What training did to a model's weights: sparsity, rank, rotation, masks, intruder dimensions.

Pure functions, one module by what it measures: :mod:`.sparsity`, :mod:`.spectrum`,
:mod:`.rotation`, :mod:`.masks`, :mod:`.intruders`; random updates to hold them against are in
:mod:`.null`. :mod:`.matrix` puts them together for one matrix, :mod:`.groups` for those of one
module type or depth; :mod:`.pairs` reads them from a run's directory, :mod:`.result` writes down
what was found.
"""
