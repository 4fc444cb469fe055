"""Certificates: records of an answer that anyone can check again."""
