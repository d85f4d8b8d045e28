"""Conditional coverage: where does coverage fail, by how much, and is it more than chance?"""
