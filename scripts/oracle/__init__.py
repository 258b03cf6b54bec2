"""The second implementation of the formats of fec, written from docs/FORMAT.md alone; __main__.py runs it."""
