"""Reads a dashboard with Grafana's own types, and prints each key and value that is lost in them."""

import json
import sys

from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(given, kept, path):
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key in kept:
                lost(value, kept[key], f"{path}.{key}")
            else:
                print(f"{path}.{key}: dropped")
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for place, pair in enumerate(zip(given, kept)):
            lost(*pair, f"{path}[{place}]")
    elif given != kept:
        print(f"{path}: {given!r} is read as {kept!r}")


plugins.register_default_plugins()
with open(sys.argv[1]) as file:
    given = json.load(file)
lost(given, json.loads(JSONEncoder().encode(Dashboard.from_json(given))), "")
