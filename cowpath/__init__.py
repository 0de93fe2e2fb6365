"""cowpath: pave the paths your agents already walk. The nouns every room shares."""

__version__ = "0.1.0"
