"""
The commands of ``elastic-events``, a room each.
"""
