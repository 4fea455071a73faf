"""
Names of hosts.
"""

from __future__ import annotations


def host_label(host: str) -> str:
    """
    Return what two spellings of one host have in common.

    That is the first label of a name, and the whole of an address.
    """
    label = host.partition(".")[0]
    return host if label.isdecimal() else label.lower()
