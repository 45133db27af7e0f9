"""Entry point; children of a module of this name do not import it again."""

from tests.benchmarks.sweep_overhead.measure import main

if __name__ == "__main__":
    main()
