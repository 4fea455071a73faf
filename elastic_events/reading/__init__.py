"""
The reading side: it knows the lines, and nothing of how they are written.
"""
