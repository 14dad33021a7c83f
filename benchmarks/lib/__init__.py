"""What the benchmarks share: options, measuring, records, and what is measured or compared with."""
