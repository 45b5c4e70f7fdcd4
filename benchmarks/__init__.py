"""What memsvc costs, and what its peers cost, measured side by side in one run: `python -m benchmarks`."""
