"""An S3 server on a free port of this machine, with one bucket, until its input ends. Says where it listens.

Then, for each line of its input: reads every object of the bucket into the folder that the line names, with AWS's own
client, and says the key and the size of each, and how many there are.
"""

import logging
import pathlib
import sys

import boto3
from moto.server import ThreadedMotoServer

logging.getLogger("werkzeug").setLevel(logging.ERROR)
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
host, port = server.get_host_and_port()
client = boto3.client(
    "s3",
    endpoint_url=f"http://{host}:{port}",
    region_name="us-east-1",
    aws_access_key_id="key",
    aws_secret_access_key="secret",
)
client.create_bucket(Bucket="bucket")
print(f"listening {port}", flush=True)
for line in sys.stdin:
    folder = pathlib.Path(line.rstrip("\n"))
    count = 0
    for page in client.get_paginator("list_objects_v2").paginate(Bucket="bucket"):
        for found in page.get("Contents", []):
            file = folder / found["Key"]
            file.parent.mkdir(parents=True, exist_ok=True)
            client.download_file("bucket", found["Key"], str(file))
            print(f"object {found['Key']} {found['Size']}")
            count += 1
    print(f"read {count}", flush=True)
server.stop()
