"""Speed and memory, always as a ratio in one run: `make bench`."""
