"""LET ANALYSTS LOOK: SQL beside the writer, Parquet, metrics, a doctor."""
