// Plain WebSockets on the paths of the API, with the client that Node has built in.
import assert from "node:assert/strict";

const { WAYMARK_WS_URL: ws, WAYMARK_API_URL: api, WAYMARK_OPERATOR_KEY: key, WAYMARK_OTHER_KEY: other } = process.env;
const { WAYMARK_THNG: thng, WAYMARK_THNG_KEY: thngKey } = process.env;
const base = `/thngs/${thng}/properties`;

// Node before 22 has it behind a flag; the package `ws` comes with `mqtt`.
const Socket = globalThis.WebSocket ?? (await import("ws")).WebSocket;

/** After which a message is missing. */
const LIMIT_MS = 30_000;

function open(path, token) {
  const socket = new Socket(`${ws}${path}?access_token=${token}`);
  const heard = [];
  let wake = () => {};
  socket.addEventListener("message", ({ data }) => {
    heard.push(JSON.parse(data));
    wake();
  });
  let ended = "";
  socket.addEventListener("close", ({ code, reason }) => {
    ended = `${path} was closed: ${code} ${reason}`;
    wake();
  });
  const next = async () => {
    const late = setTimeout(() => {
      ended ||= `${path}: nothing came in ${LIMIT_MS} ms`;
      wake();
    }, LIMIT_MS);
    while (heard.length === 0) {
      if (ended) throw new Error(ended);
      await new Promise((resolve) => (wake = resolve));
    }
    clearTimeout(late);
    return heard.shift();
  };
  return new Promise((resolve, reject) => {
    socket.addEventListener("open", () => resolve({ socket, next }));
    socket.addEventListener("error", () => reject(new Error(`${path} was refused`)));
  });
}

async function call(method, path, body) {
  const headers = { authorization: key, "content-type": "application/json", accept: "application/json" };
  const answer = await fetch(`${api}${path}`, { method, headers, body: JSON.stringify(body) });
  return answer.json();
}

const all = await open(base, key);
const written = await call("PUT", base, [{ key: "a", value: 1 }, { key: "b", value: [2] }]);
assert.deepEqual(await all.next(), written);

// What is sent is written, and heard like any other write; what is wrong is answered as HTTP does.
const one = await open(`/v2${base}/A`, key);
one.socket.send("21.5");
const echo = await one.next();
assert.equal(echo[0].value, 21.5);
assert.deepEqual(await all.next(), echo);
one.socket.send("{");
assert.equal((await one.next()).status, 400);
one.socket.send("null");
const fault = await one.next();
assert.deepEqual(fault.errors, (await call("PUT", `${base}/a`, null)).errors);

const actions = await open("/actions/scans", key);
actions.socket.send(JSON.stringify({ thng }));
assert.equal((await actions.next()).thng, thng);

// Changes of redirections are heard at their paths; nothing is written there.
const changes = await open("/redirections/SOCKET", key);
await call("POST", "/redirections", { platformId: thng, defaultRedirectUrl: "https://example.com/", shortId: "SOCKET" });
assert.equal((await changes.next()).change, "created");
changes.socket.send("{}");
assert.equal((await changes.next()).status, 405);

// The Thng with its own key.
const itself = await open(base, thngKey);
assert.deepEqual((await all.next())[0].value, true);

await assert.rejects(open(base, other));
await assert.rejects(open(base, "x"));
await assert.rejects(open("/thngs", key));

for (const { socket } of [all, one, actions, changes, itself]) socket.close();
console.log("done");
