"""Compares Parquet files with lines of JSON: rows.py PARQUET LINES, both patterns of files, sorted by name.

Every row must give back the document of its line, in the same order; a name of a file that ends with .gz is unpacked. Prints
{"rows": COUNT, "types": {column: type}, "values": {column: values that are not null}} as JSON.
"""

import glob
import gzip
import itertools
import json
import sys

import duckdb

GROUPS = ("location", "context", "customFields")
END = object()


def lines(pattern):
    for name in sorted(glob.glob(pattern)):
        with (gzip.open if name.endswith(".gz") else open)(name, "rt", encoding="utf-8") as file:
            for line in file:
                yield expected(json.loads(line))


def expected(document):
    """A position that repeats latitude and longitude is not in the files."""
    location = document.get("location")
    if isinstance(location, dict) and "latitude" in location and "longitude" in location:
        point = {"type": "Point", "coordinates": [location["longitude"], location["latitude"]]}
        if location.get("position") == point:
            del location["position"]
    return document


def merged(row):
    """The members that are there, with those of `more`."""
    members = {name: value for name, value in row.items() if value is not None}
    more = json.loads(members.pop("more", "{}"))
    assert not members.keys() & more.keys(), (members, more)
    return members | more


def document(row):
    found = merged(row)
    for name in GROUPS:
        if isinstance(row[name], dict):
            found[name] = merged(row[name])
    if row["reactions"] is not None:
        found["reactions"] = json.loads(row["reactions"])
    return found


def rows(files):
    answer = duckdb.execute(
        "SELECT * REPLACE (epoch_ms(createdAt) AS createdAt, epoch_ms(timestamp) AS timestamp) "
        "FROM read_parquet(?, hive_partitioning = false)",
        [files],
    )
    names = [column[0] for column in answer.description]
    while page := answer.fetchmany(1000):
        for row in page:
            yield dict(zip(names, row))


def main(parquet, pattern):
    files = sorted(glob.glob(parquet))
    count = 0
    values = {}
    for row, line in itertools.zip_longest(rows(files), lines(pattern), fillvalue=END):
        if row is END or line is END:
            sys.exit(f"row {count}: {'the files are shorter' if row is END else 'the lines are fewer'}")
        if document(row) != line:
            sys.exit(f"row {count}:\n{json.dumps(document(row), sort_keys=True)}\n{json.dumps(line, sort_keys=True)}")
        count += 1
        for name, value in row.items():
            members = value.items() if isinstance(value, dict) else [(None, value)]
            for member, one in members:
                path = name if member is None else f"{name}.{member}"
                values[path] = values.get(path, 0) + (one is not None)
    described = duckdb.execute("DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)", [files]).fetchall()
    types = {column[0]: column[1] for column in described}
    print(json.dumps({"rows": count, "types": types, "values": values}))


main(*sys.argv[1:])
