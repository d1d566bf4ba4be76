"""Mock upstreams: one contract, served by Flask and by aiohttp with nothing but the framework in between."""
