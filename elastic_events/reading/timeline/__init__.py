"""
The timeline: a run as one page of HTML that needs nothing else.
"""
