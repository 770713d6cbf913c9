"""Counts exported actions: [type, lines, different ids, sum of timestamps] for each type, as JSON."""

import json
import sys

import duckdb

FOUND = """
    SELECT type, count(*), count(DISTINCT id), CAST(sum(timestamp) AS VARCHAR)
    FROM read_json(?, format = 'newline_delimited', columns = {id: 'VARCHAR', type: 'VARCHAR', timestamp: 'BIGINT'})
    GROUP BY type ORDER BY type
"""
print(json.dumps(duckdb.execute(FOUND, [sys.argv[1]]).fetchall()))
