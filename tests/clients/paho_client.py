"""paho-mqtt against a running Waymark: MQTT 3.1.1 and 5, plain and TLS."""

import json
import os
import queue
import urllib.request

import paho.mqtt.client as mqtt

API = os.environ["WAYMARK_API_URL"]
KEY = os.environ["WAYMARK_OPERATOR_KEY"]
BASE = f"/thngs/{os.environ['WAYMARK_THNG']}/properties"


def call(method, path, body=None):
    request = urllib.request.Request(
        API + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": KEY, "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def client(protocol, tls, name):
    heard, ready = queue.Queue(), queue.Queue()
    made = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=protocol)
    made.username_pw_set("authorization", KEY)
    if tls:
        made.tls_set(ca_certs=os.environ["WAYMARK_CA"])
    made.on_message = lambda _c, _u, message: heard.put((message.topic, json.loads(message.payload)))
    made.on_subscribe = lambda _c, _u, _m, codes, _p: ready.put([code.value for code in codes])
    made.on_connect = lambda _c, _u, _f, code, _p: ready.put(code.value)
    made.connect("localhost", int(os.environ["WAYMARK_MQTT_TLS_PORT" if tls else "WAYMARK_MQTT_PORT"]), 30)
    made.loop_start()
    assert ready.get(timeout=30) == 0
    return made, heard, ready


for protocol in (mqtt.MQTTv311, mqtt.MQTTv5):
    for tls in (False, True):
        name = f"paho-{protocol}-{tls}"
        made, heard, ready = client(protocol, tls, name)
        made.subscribe(BASE, qos=1)
        assert ready.get(timeout=30) == [1]
        written = call("PUT", BASE, [{"key": name, "value": 1}])
        assert heard.get(timeout=30) == (BASE, written)
        for qos in (0, 1, 2):
            made.publish(f"{BASE}/{name}", json.dumps({"value": qos, "timestamp": qos}), qos=qos).wait_for_publish(30)
            topic, body = heard.get(timeout=30)
            assert topic == BASE and body[0]["value"] == qos, (topic, body)
        history = call("GET", f"{BASE}/{name}?to=2&sortOrder=ASCENDING")
        assert [point["value"] for point in history] == [0, 1, 2], history
        made.subscribe("/thngs/+/properties", qos=1)
        assert ready.get(timeout=30)[0] >= 0x80
        made.disconnect()
        made.loop_stop()
print("done")
