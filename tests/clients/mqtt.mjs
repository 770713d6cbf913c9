// The npm client `mqtt` against a running Waymark: over WebSockets with TLS, and over TLS, in both versions.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import mqtt from "mqtt";

const { WAYMARK_API_URL: api, WAYMARK_OPERATOR_KEY: key, WAYMARK_WSS_URL: wss, WAYMARK_THNG: thng } = process.env;
const ca = readFileSync(process.env.WAYMARK_CA);
const base = `/thngs/${thng}/properties`;

async function call(method, path, body) {
  const headers = { authorization: key, "content-type": "application/json" };
  const answer = await fetch(`${api}${path}`, { method, headers, body: JSON.stringify(body) });
  return answer.json();
}

for (const url of [wss, `mqtts://localhost:${process.env.WAYMARK_MQTT_TLS_PORT}`]) {
  for (const protocolVersion of [4, 5]) {
    const clientId = `npm-${protocolVersion}-${url.slice(0, 4)}`;
    const options = { protocolVersion, clientId, ca, username: "authorization", password: key };
    const client = await mqtt.connectAsync(url, options, false);
    const heard = [];
    let wake = () => {};
    client.on("message", (topic, payload) => {
      heard.push([topic, JSON.parse(payload)]);
      wake();
    });
    const next = async () => {
      while (heard.length === 0) await new Promise((resolve) => (wake = resolve));
      return heard.shift();
    };
    const [granted] = await client.subscribeAsync(`${base}/+`, { qos: 1 });
    assert.equal(granted.qos, 1);
    const written = await call("PUT", base, [{ key: clientId.toLowerCase(), value: { a: 1 } }]);
    assert.deepEqual(await next(), [`${base}/${clientId.toLowerCase()}`, written]);
    for (const qos of [0, 1, 2]) {
      await client.publishAsync(`${base}/x`, String(qos), { qos });
      const [topic, body] = await next();
      assert.equal(topic, `${base}/x`);
      assert.equal(body[0].value, qos);
    }
    if (protocolVersion === 5) {
      await assert.rejects(client.publishAsync(`${base}/~connected`, "true", { qos: 1 }), /Not authorized/i);
    }
    await client.endAsync();
  }
}

// Without a key in the CONNECT, the one in the URL serves.
const client = await mqtt.connectAsync(`${wss}?access_token=${key}`, { ca, protocolVersion: 4 }, false);
await client.endAsync();
console.log("done");
