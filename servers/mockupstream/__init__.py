"""Mock upstreams: one contract, served by Flask and by aiohttp with little but the
framework in between.
"""
