"""What the OpenAPI document cannot say to a program that makes requests up.

Some texts are right only together with what is stored: ids of resources that are
there, short domains of the account, filters of a list, page tokens. The document
names their `format`; here is how to make them. Nothing here weakens a check.
"""

import base64
import datetime
import hashlib
import json
import os
import re
import urllib.request

import schemathesis
from hypothesis import strategies as st
from schemathesis.generation import GenerationMode

API = os.environ["WAYMARK_API_URL"].rstrip("/")
KEY = os.environ["WAYMARK_OPERATOR_KEY"]
DOMAIN = os.environ["WAYMARK_SHORT_DOMAIN"]
NOWHERE = "U" * 24
# The id of the key by which all requests come: none may revoke, replace or confine it.
OWN_KEY = hashlib.sha256(KEY.encode()).hexdigest()[:24].upper()
ID = re.compile("[abcdefghkmnpqrstwxyABCDEFGHKMNPQRSTUVWXY0-9]{24}")
# The product in the document's examples of commissions: a request may have deleted who was made with it.
EXAMPLE_PRODUCT = "gs1:01:09521234543213"


def create(path, body):
    request = urllib.request.Request(
        f"{API}{path}",
        data=json.dumps(body).encode(),
        headers={"authorization": KEY, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["id"]


# Resources that bodies may name; no request may delete them.
NAMED = {"name": "named by bodies"}
# By these a body may name the Thng, too.
IDENTIFIED = NAMED | {"identifiers": {"fixture": "named"}}
schemathesis.openapi.format("identifier-key", st.just("fixture"))
schemathesis.openapi.format("identifier-value", st.just("named"))
FIXTURES = {kind: create(path, IDENTIFIED if kind == "thng" else NAMED) for kind, path in {
    "product": "/products",
    "thng": "/thngs",
    "project": "/projects",
    "place": "/places",
    "collection": "/collections",
}.items()}
FIXTURES["webhook"] = create("/webhooks", {"name": "named by bodies", "url": "https://webhooks.invalid/hook",
    "status": "disabled"})
FIXTURES["role"] = create("/roles", {"name": "named by bodies"})
FIXTURES["user-role"] = create("/roles", {"name": "named by bodies", "type": "userInApp"})
for kind, found in FIXTURES.items():
    schemathesis.openapi.format(f"{kind}-id", st.just(found))
# The code of the Thng, for print orders. Without `Accept` the answer would be its image.
link = urllib.request.Request(f"{API}/redirections", data=json.dumps(
    {"platformId": FIXTURES["thng"], "defaultRedirectUrl": "https://example.com/"}).encode(),
    headers={"authorization": KEY, "content-type": "application/json", "accept": "application/json"})
with urllib.request.urlopen(link) as response:
    SHORT_ID = json.load(response)["shortId"]
schemathesis.openapi.format("short-id", st.just(SHORT_ID))
schemathesis.openapi.format("path-prefix", st.sampled_from(["r", "shop/go"]))
schemathesis.openapi.format("filter-listRedirections", st.just(f"shortId={SHORT_ID}"))
schemathesis.openapi.format("print-naming", st.sampled_from(["{shortId}", "{index}_{shortId}"]))
schemathesis.openapi.format("byte-range", st.just("bytes=0-"))
schemathesis.openapi.format("entity-tag", st.just('"0"'))
schemathesis.openapi.format("print-size", st.sampled_from(["a4-63.5x38.1", "roll-50x25"]))
schemathesis.openapi.format("action-type", st.sampled_from(["scans", "checkins", "encodings"]))
schemathesis.openapi.format("resource-id", st.sampled_from([FIXTURES["product"], FIXTURES["thng"]]))
schemathesis.openapi.format("short-domain", st.just(DOMAIN))
schemathesis.openapi.format("own-host", st.text("abcdefghijklmnopqrstuvwxyz", min_size=8, max_size=20).map("{}.example".format))
schemathesis.openapi.format("page-token", st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1))
segment = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~%20", max_size=20).map(
    lambda text: text.replace("%", "%25")
)
schemathesis.openapi.format(
    "target-url",
    st.builds(
        "{}://{}.example/{}?item={}".format,
        st.sampled_from(["http", "https", "HTTPS"]),
        st.from_regex("[a-z]([a-z0-9]{0,10})", fullmatch=True),
        segment,
        st.sampled_from(["{shortId}", "{platformId}", "{evrythngId}", "{thngId}", "{productId}", "17", ""]),
    ),
)

# A file for jobs, which no request may delete either.
upload = urllib.request.Request(f"{API}/files", method="POST", data=json.dumps({"name": "ids.csv"}).encode(),
    headers={"authorization": KEY, "content-type": "application/json"})
with urllib.request.urlopen(upload) as response:
    file = json.load(response)
content = urllib.request.Request(file["uploadUrl"], method="PUT", data=f"id\n{FIXTURES['thng']}\n".encode(),
    headers={"content-type": "text/csv"})
urllib.request.urlopen(content).close()
FIXTURES["file"] = file["id"]
schemathesis.openapi.format("file-url", st.just(file["contentUrl"]))

# Fields by which each list can be filtered.
word = st.text("abcXYZ0189-_ ", min_size=1, max_size=20)
LISTS = ["Products", "Thngs", "Places", "Projects", "Applications", "Collections", "Files", "ActionTypes"]
LISTS += ["CollectionThngs", "CollectionCollections", "Batches"]
TIMES = ["listActions", "listThngActions", "listProductActions", "listCollectionActions", "listThngLocations"]
TIMES += ["listThngCommissions", "listThngDecommissions"]
TIMES += ["read-thng-property", "read-product-property"]
for name in LISTS:
    schemathesis.openapi.format(f"filter-list{name}", word.map("name={}".format))
for name in TIMES:
    schemathesis.openapi.format(f"filter-{name}", st.integers(0, 10**12).map("timestamp>{}".format))
schemathesis.openapi.format(
    "moment",
    st.builds(
        "20{:02}-{:02}-{:02}T{:02}:{:02}:{:02}{}".format,
        st.integers(0, 99), st.integers(1, 12), st.integers(1, 28), st.integers(0, 23), st.integers(0, 59),
        st.integers(0, 59), st.sampled_from(["Z", "+01:00", "-05:30", ".5Z", ".123456+14:00"]),
    ),
)
schemathesis.openapi.format("filter-listActionJobs", st.just("status=COMPLETED"))
schemathesis.openapi.format("filter-listTasks", st.just("status=COMPLETED"))
schemathesis.openapi.format("filter-listActionJobLogs", st.just("type=ERROR"))
schemathesis.openapi.format("webhook-url", st.just("https://webhooks.invalid/hook"))
schemathesis.openapi.format("filter-listWebhooks", st.just("status=active"))
schemathesis.openapi.format("filter-listWebhookDeliveries", st.just("status=dead"))
schemathesis.openapi.format("filter-listReactions", st.just("status=active"))
schemathesis.openapi.format("filter-listCases", st.sampled_from(["status=open", "kind=counterfeit"]))
schemathesis.openapi.format("filter-listErasures", st.sampled_from(["status=COMPLETED", "type=network"]))
schemathesis.openapi.format("filter-listPrintOrders", st.just("status=complete"))
schemathesis.openapi.format("filter-listLinkChanges", st.sampled_from(["status=complete", "type=undo"]))
schemathesis.openapi.format("event-path", st.sampled_from(["type", "context.city", "customFields.a.b"]))
schemathesis.openapi.format("event-type", st.sampled_from(["action", "action.scans", "job"]))
schemathesis.openapi.format("event-types", st.sampled_from(["action", "action.scans", "job,redirection"]))
schemathesis.openapi.format("event-match", st.integers(0, 10**12).map("timestamp>{}".format))
schemathesis.openapi.format("user-page", st.sampled_from(["", "https://shop.example/account?lang=de"]))
schemathesis.openapi.format("network", st.sampled_from(["192.0.2.0/24", "2001:db8::/32", "10.0.0.0/8"]))
schemathesis.openapi.format("project-condition", st.just(f"project={FIXTURES['project']}"))
schemathesis.openapi.format("role-name", st.text("abcXYZ0189-_ ", min_size=1, max_size=20))
schemathesis.openapi.format("role-path", st.sampled_from(["/thngs", "/products", "/access", "/actions"]))
schemathesis.openapi.format("permission", st.sampled_from(["thngs:create,read", "jobs:list", "purchaseOrders:read"]))
# A range of statistics is at most some weeks by the hour, and not in the future.
DAY = datetime.timedelta(days=1)
TODAY = datetime.datetime.now(datetime.timezone.utc).date()
schemathesis.openapi.format("range-begin", st.integers(2, 6).map(lambda days: str(TODAY - days * DAY)))
schemathesis.openapi.format("range-end", st.integers(0, 1).map(lambda days: str(TODAY - days * DAY)))
schemathesis.openapi.format("time-zone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]))
schemathesis.openapi.format("dimensions", st.sampled_from(["country", "product,country", "link", "device"]))
schemathesis.openapi.format("filter-readScanStatistics", st.sampled_from(["country=DE", "country=DE|AT&device=phone"]))
schemathesis.openapi.format("filter-listAuditEntries", st.just("resource=redirection"))
schemathesis.openapi.format("filter-listPlatformAuditEntries", st.just("resource=takeDown"))
for name in ["Roles", "AccessPolicies"]:
    schemathesis.openapi.format(f"filter-list{name}", word.map("name={}".format))
# Every colour stands out from every background.
schemathesis.openapi.format("page-background", st.sampled_from(["#ffffff", "#FFFFE0", "#f0f0f0"]))
schemathesis.openapi.format("page-color", st.sampled_from(["#000000", "#1a1a1a", "#0b3d91"]))
schemathesis.openapi.format("page-link", st.sampled_from(["https://example.com/", "https://example.com/help?a=1&b=2"]))
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z"/></svg>'
schemathesis.openapi.format("page-logo", st.just("data:image/svg+xml;base64," + base64.b64encode(SVG).decode()))
schemathesis.openapi.format("rule-match", st.integers(0, 23).map("hour={}".format))


# What the Digital Link of a Thng leads to.
LINKS = [{"linkType": "gs1:pip", "href": "https://example.com/{01}", "title": "Product", "default": True}]

# Members of bodies that name a resource, and its kind.
NAMING = {kind: kind for kind in FIXTURES} | {"thngId": "thng", "platformId": "thng"}


def name_what_is_there(body, kind=None):
    """The body with ids of resources that are there: others may be of another kind, or deleted by now."""
    if isinstance(body, dict):
        return {key: name_what_is_there(value, NAMING.get(key)) for key, value in body.items()}
    if isinstance(body, list):
        return [name_what_is_there(item, kind) for item in body]
    if kind and isinstance(body, str) and ID.fullmatch(body) and body not in FIXTURES.values():
        return FIXTURES[kind]
    return body


# Any value, with all that is within: generators of clients know no such schema, so the document says it in words.
NO_NUL = {"pattern": "^[^\\u0000]*$"}
INSIDE = {"$ref": "#/components/schemas/JsonValue"}
ANY = [
    {"type": ["null", "boolean", "number"]},
    {"type": "string", **NO_NUL},
    {"type": "array", "items": INSIDE},
    {"type": "object", "propertyNames": NO_NUL, "additionalProperties": INSIDE},
]


@schemathesis.hook
def before_load_schema(context, raw_schema):
    schemas = raw_schema["components"]["schemas"]
    schemas["JsonValue"] = {"anyOf": ANY}
    schemas["SomeJsonValue"] = {"allOf": [INSIDE, {"not": {"type": "null"}}]}
    # The schema cannot say when now is: 2100 is later.
    for path, method in (("/keys", "post"), ("/keys/{id}", "put")):
        body = raw_schema["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        body["properties"]["expiresAt"]["minimum"] = 4102444800000


# Parameters of a code that are right by themselves, whatever else is asked for.
ALONE = ("ecl", "w", "h", "tpl", "hri", "qz")
BESIDE = ("x", "size", "dpi", "xmin", "xmax", "version", "payload", "color", "background", "shape", "logo")


def one_point(value):
    """The value with one form of each point: two forms must agree, and one coordinate needs the other."""
    if isinstance(value, list):
        return [one_point(item) for item in value]
    if not isinstance(value, dict):
        return value
    found = {key: one_point(item) for key, item in value.items()}
    pair = [found.get("latitude"), found.get("longitude")]
    if found.get("position") is not None or None in pair:
        found.pop("latitude", None)
        found.pop("longitude", None)
    return found


def is_positive(case):
    meta = case.meta
    return meta is not None and meta.generation.mode == GenerationMode.POSITIVE


@schemathesis.hook
def before_call(context, case, kwargs):
    query = case.query or {}
    if is_positive(case):
        # A token is right for one account and one query only.
        query.pop("nextPageToken", None)
        # Two parameters that come together or not at all; beside them some others have no meaning.
        if "lat" in query and "lon" in query:
            query.pop("filter", None)
            query.pop("ids", None)
            query.pop("sortOrder", None)
        else:
            for name in ("lat", "lon", "maxDist"):
                query.pop(name, None)
        # Sizes in pixels and in millimetres exclude each other, and not each size holds each code.
        codes = [name for name in ALONE if name in query]
        for name in [*codes[1:], *BESIDE]:
            query.pop(name, None)
        # Settings belong to one of them.
        if case.path.endswith("/authentication/settings") and "project" in query:
            query.pop("product", None)
        # Members of a collection; else only what a member names.
        last = case.path.rsplit("/", 1)[-1]
        of_items = {"thngs": "thng", "collections": "collection"}.get(last) if isinstance(case.body, list) else None
        case.body = name_what_is_there(case.body, of_items)
        if not case.path.endswith("/authentication") and "/properties" not in case.path:
            case.body = one_point(case.body)
        if isinstance(case.body, list) and all(isinstance(item, str) for item in case.body):
            case.body = list(dict.fromkeys(case.body))
    if is_positive(case) and isinstance(case.body, dict):
        # Only some domains take short ids of several segments.
        if isinstance(case.body.get("shortId"), str):
            case.body["shortId"] = case.body["shortId"].replace("/", "-")
        # What a schema cannot say: three forms of one point, and two bounds in order.
        location = case.body.get("location")
        if case.body.get("product") == EXAMPLE_PRODUCT:
            case.body["product"] = FIXTURES["product"]
        if case.path.endswith("/authentication") and isinstance(location, dict):
            location["longitude"], location["latitude"] = location["position"]["coordinates"]
        if case.path.endswith("/authentication"):
            # Only the id of a stored action stands for these.
            for name, value in (("type", "scans"), ("locationSource", "unknown")):
                if case.body.get(name) is None:
                    case.body[name] = value
            if case.body["locationSource"] == "sensor" and location is None:
                case.body["locationSource"] = "unknown"
        # Exactly one link is the default, without times; a product needs a GTIN of its own for links.
        for name in ("links", "levels", "gtinAliases"):
            if name in case.body and "/products" in case.path:
                del case.body[name]
            elif name in case.body:
                case.body[name] = LINKS
        if case.path.endswith("/links/preview"):
            # A GTIN is of the product, an extension stands alone, attributes in a query follow GS1's rules, and a Thng is needed.
            for name in ("gtin", "tpx", "query", "commissionState", "assessment"):
                case.body.pop(name, None)
        if case.path.endswith("/jobs/redirections"):
            # One condition is needed, and bounds must be in order.
            case.body = {"filter": f"shortId={SHORT_ID}", "patch": {"title": "Changed"}, "dryRun": True}
        if case.path.endswith("/jobs/qr"):
            # Not every measure fits every format, and an order may make a million Things.
            layout = {"layout": {"size": "a4-63.5x38.1"}} if case.body.get("format") == "pdf-sheets" else {}
            case.body = {"source": {"list": {"shortIds": [SHORT_ID]}}, "format": case.body["format"],
                "waitForEdges": "none", **layout}
        if case.path.endswith("/reprint") and "from" in case.body:
            case.body["to"] = max(case.body["from"], case.body["to"])
        if case.path.endswith("/privacy/erasures") and "network" in case.body:
            case.body["from"], case.body["to"] = 0, max(case.body["from"], case.body["to"], 1)
        of_settings = case.body.get("settings", case.body)
        if "/authentication/" in case.path and isinstance(of_settings, dict):
            of_settings.pop("suspectedPoints", None)
            of_settings.pop("duplicatePoints", None)
        # What the effect of a reaction names must be of its project.
        effect = json.dumps(case.body.get("effect"))
        if case.path.endswith("/reactions") and any(found in effect for found in FIXTURES.values()):
            query.pop("project", None)
    if "/keys/" in case.path and (case.path_parameters or {}).get("id", "").upper() == OWN_KEY:
        case.path_parameters["id"] = NOWHERE
    if case.method.upper() == "DELETE":
        for name, value in (case.path_parameters or {}).items():
            if value in FIXTURES.values():
                case.path_parameters[name] = NOWHERE
        if isinstance(query.get("ids"), str):
            named = query["ids"].split(",")
            query["ids"] = ",".join(NOWHERE if found in FIXTURES.values() else found for found in named)
