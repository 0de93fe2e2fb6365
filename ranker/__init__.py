"""ANSWER: search, next skills, and the evidence behind both."""
