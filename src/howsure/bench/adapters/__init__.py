"""Protocols as bench knows them, a file each."""
