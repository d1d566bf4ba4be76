"""The runs that the documentation shows, and the program that measures and
stores them.
"""
