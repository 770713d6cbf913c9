"""`python-evrythng` from PyPI, unmodified: what an operator does with it, from a project to the history of a Thng."""

import os

os.environ["PYEVT_BASE_URL"] = os.environ["WAYMARK_API_URL"]
os.environ["EVRYTHNG_API_TOKEN"] = os.environ["WAYMARK_OPERATOR_KEY"]

from evrythng.entities import (  # noqa: E402
    action_types, actions, application_users, applications, collections_, locations, places, products, projects,
    properties, thngs,
)


def ok(response, status):
    assert response.status_code == status, (response.request.method, response.url, response.status_code, response.text)
    return response.json() if response.content else None


product = ok(products.create_product("Bag", tags=["a"]), 201)
assert ok(products.read_product(product["id"]), 200)["name"] == "Bag"
assert ok(products.update_product(product["id"], name="Big bag", tags=["b"]), 200)["tags"] == ["b"]
assert [row["id"] for row in ok(products.list_products(), 200)] == [product["id"]]

thng = ok(thngs.create_thng("Bag 1", product=product["id"], customFields={"colour": "red"}), 201)
assert ok(thngs.update_thng(thng["id"], name="Bag one"), 200)["customFields"] == {"colour": "red"}
assert ok(thngs.read_thng(thng["id"]), 200)["product"] == product["id"]
assert len(ok(thngs.list_thngs(request_kwargs={"perPage": 1}), 200)) == 1

ok(properties.upsert_thng_property(thng["id"], "temp", [{"value": 20}, {"value": 21, "timestamp": 5}]), 200)
assert len(ok(properties.read_thng_property(thng["id"], "temp"), 200)) == 2
assert len(ok(properties.read_thng_property(thng["id"], "temp", timestamp_to=10), 200)) == 1
ok(properties.upsert_thng_properties(thng["id"], [{"key": "temp", "value": 22, "timestamp": 6}]), 200)
assert [one["key"] for one in ok(properties.list_thng_properties(thng["id"]), 200)] == ["temp"]
ok(properties.delete_thng_property(thng["id"], "temp", timestamp_to=10), 200)
assert len(ok(properties.read_thng_property(thng["id"], "temp"), 200)) == 1

ok(action_types.create_action_type("_moved"), 201)
moved = ok(actions.create_action("_moved", thng=thng["id"], customFields={"by": "hand"}), 201)
ok(thngs.create_thng_action("scans", thng["id"]), 201)
assert [row["id"] for row in ok(thngs.read_thng_actions(thng["id"], "_moved"), 200)] == [moved["id"]]
assert ok(actions.list_actions("_moved"), 200)[0]["product"] == product["id"]
ok(actions.delete_action("_moved", moved["id"]), 200)

shop = ok(places.create_place("Shop", position={"type": "Point", "coordinates": [8.5, 47.25]}), 201)
assert ok(places.read_place(shop["id"]), 200)["latitude"] == 47.25

inner, outer = (ok(collections_.create_collection(name), 201) for name in ("inner", "outer"))
ok(collections_.add_collection_thngs(outer["id"], [thng["id"]]), 204)
assert [row["id"] for row in ok(collections_.list_collection_thngs(outer["id"]), 200)] == [thng["id"]]
ok(collections_.add_collections_to_collection(outer["id"], [inner["id"]]), 200)
assert [row["id"] for row in ok(collections_.read_collections_from_collection(outer["id"]), 200)] == [inner["id"]]
ok(collections_.delete_collection_thng(outer["id"], thng["id"]), 200)

project = ok(projects.create_project("Summer"), 201)
application = ok(applications.create_application(project["id"], "Page"), 201)
assert ok(applications.read_application(project["id"], application["id"]), 200)["name"] == "Page"
assert len(ok(applications.read_trusted_application_key(project["id"], application["id"]), 200)["secretApiKey"]) == 80
user = ok(application_users.create_anonymous_user(api_key=application["appApiKey"]), 201)
of_project = {"query_params": {"project": project["id"]}}
shown = ok(thngs.create_thng("Bag 2", request_kwargs=of_project), 201)
ok(actions.create_action("scans", thng=shown["id"], api_key=user["evrythngApiKey"]), 201)

for ended in (
    thngs.delete_thng(thng["id"]), products.delete_product(product["id"]), places.delete_place(shop["id"]),
    collections_.delete_collection(outer["id"]), action_types.delete_action_type("_moved"),
):
    ok(ended, 200)
assert thngs.read_thng(thng["id"]).status_code == 404
print("done")
