"""LEARN: from published events to tested edges and the next-skill model."""
