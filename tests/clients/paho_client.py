"""paho-mqtt against a running Waymark: MQTT 3.1.1 and 5, plain, TLS, and over WebSockets with TLS."""

import json
import os
import queue
import time
import urllib.parse
import urllib.request

import paho.mqtt.client as mqtt

API = os.environ["WAYMARK_API_URL"]
KEY = os.environ["WAYMARK_OPERATOR_KEY"]
WSS = os.environ["WAYMARK_WSS_URL"]
PORTS = {
    "tcp": int(os.environ["WAYMARK_MQTT_PORT"]),
    "tls": int(os.environ["WAYMARK_MQTT_TLS_PORT"]),
    "wss": urllib.parse.urlsplit(WSS).port,
}
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


def client(protocol, way, name, keep_alive=30):
    heard, ready = queue.Queue(), queue.Queue()
    transport = "websockets" if way == "wss" else "tcp"
    made = mqtt.Client(
        mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=protocol, transport=transport
    )
    made.username_pw_set("authorization", KEY)
    if way == "wss":
        made.ws_set_options(path=urllib.parse.urlsplit(WSS).path)
    if way != "tcp":
        made.tls_set(ca_certs=os.environ["WAYMARK_CA"])
    made.on_message = lambda _c, _u, message: heard.put((message.topic, json.loads(message.payload)))
    made.on_subscribe = lambda _c, _u, _m, codes, _p: ready.put([code.value for code in codes])
    made.on_connect = lambda _c, _u, _f, code, _p: ready.put(code.value)
    lost = []
    made.on_disconnect = lambda _c, _u, _f, code, _p: lost.append(code)
    made.connect("localhost", PORTS[way], keep_alive)
    made.loop_start()
    assert ready.get(timeout=30) == 0
    return made, heard, ready, lost


for protocol in (mqtt.MQTTv311, mqtt.MQTTv5):
    for way in ("tcp", "tls", "wss"):
        name = f"paho-{protocol}-{way}"
        made, heard, ready, lost = client(protocol, way, name)
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
        # A WebSocket ping right behind the CONNACK made paho reconnect for ever.
        time.sleep(0.2)
        assert lost == [] and ready.empty(), lost
        made.disconnect()
        made.loop_stop()
# Pings of MQTT alone keep an idle connection for longer than its keep-alive.
idle = [client(mqtt.MQTTv311, way, f"paho-idle-{way}", keep_alive=1) for way in ("tcp", "tls", "wss")]
time.sleep(4)
for made, _, ready, lost in idle:
    assert lost == [] and ready.empty() and made.is_connected(), lost
    made.disconnect()
    made.loop_stop()
print("done")
