"""A walk by the client that openapi-python-client makes of the document; it is generated as the package `waymark`."""

import os

from waymark import AuthenticatedClient
from waymark.api.products import create_product, list_products
from waymark.api.redirections import create_redirection, read_redirection
from waymark.api.thngs import create_thng, read_thng
from waymark.models import CreateProductBodyType0, CreateRedirectionBodyType0, CreateThngBodyType0, ReadRedirectionEcl

TARGET = "https://example.com/?item={shortId}"

client = AuthenticatedClient(
    base_url=os.environ["WAYMARK_API_URL"],
    token=os.environ["WAYMARK_OPERATOR_KEY"],
    prefix="",
    headers={"Accept": "application/json"},
)

product = create_product.sync(client=client, body=CreateProductBodyType0(name="Python bag", tags=["python"]))
thng = create_thng.sync(client=client, body=CreateThngBodyType0(name="Python bag 1", product=product.id))
made = create_redirection.sync_detailed(
    client=client, body=CreateRedirectionBodyType0(platform_id=thng.id, default_redirect_url=TARGET)
)
assert made.status_code == 201, made
short_id = made.parsed.short_id
read = read_redirection.sync(short_id, client=client)
assert (read.default_redirect_url, read.type_, read.platform_id) == (TARGET, "thng", thng.id), read
again = read_thng.sync(thng.id, client=client)
assert (again.name, again.product) == ("Python bag 1", product.id), again
assert [one.name for one in list_products.sync(client=client, filter_="tags=python", per_page=5)] == ["Python bag"]
images = client.with_headers({"Accept": "image/png"})
image = images.get_httpx_client().get(f"/redirections/{short_id}.qr", params={"w": 300, "ecl": ReadRedirectionEcl.Q})
assert (image.status_code, image.headers["content-type"]) == (200, "image/png"), image
missing = read_thng.sync("U" * 24, client=client)
assert missing.status == 404, missing
print("ok - openapi-python-client")
