// A provider of OpenID Connect for tests: `oidc-provider`, with answers that a test can spoil.
//
//   node provider.mjs PORT [CERTIFICATE KEY]
//
// Prints its port (PORT 0: a free one) and then serves. `POST /test` takes JSON:
//
//   redirect   the redirect URI of the client `waymark`
//   spoil      what is wrong from here on; see SPOILERS
//   rotate     true: signs with another key, under another id
//   inIdToken  true: the ID token has the address, not only the answer to the access token
//   at         the path whose answers are endless or lead elsewhere, or that fails; the token endpoint unless told
//   metadata   members that replace those of its metadata; a null removes one
//   nameless   true: keys are published without ids
//   user       members that replace those of the answer to the access token
//
// and answers how often each path was asked for. Whoever signs in as NAME has the address NAME@example.com; it is not
// verified for NAME.unverified, and there is none for NAME.silent.
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer as createPlain } from 'node:http';
import { createServer as createTls } from 'node:https';

import { SignJWT, decodeJwt, importJWK } from 'jose';
import { Provider } from 'oidc-provider';

const CLIENT = 'waymark';
const SECRET = 'a secret of the client: 100 %';
const PATH_OF_KEYS = '/jwks';

const newKey = (kid) => {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: 'RS256', use: 'sig' };
};

const [port, certificate, keyFile] = process.argv.slice(2);
const state = {
  redirect: 'https://unused.example.com/',
  spoil: null,
  inIdToken: false,
  at: '/token',
  metadata: {},
  nameless: false,
  user: {},
};
const counts = {};
let [number, key] = [1, newKey('key-1')];
let issuer;
let providers;

const account = (_, id) => {
  const [name, how] = id.split('.');
  const claims = { sub: id, name: `${name} of the tests` };
  if (how !== 'silent') Object.assign(claims, { email: `${name}@example.com`, email_verified: how !== 'unverified' });
  return { accountId: id, claims: () => claims };
};

const provider = (jwk) =>
  new Provider(issuer, {
    clients: [{ client_id: CLIENT, client_secret: SECRET, redirect_uris: [state.redirect] }],
    jwks: { keys: [jwk] },
    findAccount: account,
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    conformIdTokenClaims: !state.inIdToken,
    cookies: { keys: [randomBytes(16).toString('hex')] },
    pkce: { required: () => true },
    // Longer than what tests let pass.
    ttl: { IdToken: 86_400 },
  });

// The provider, and two others that sign with keys that it does not publish: one under its id, one under another.
const build = () => {
  const others = { 'foreign-key': newKey(key.kid), 'unknown-key': newKey('unknown') };
  providers = { true: provider(key).callback() };
  for (const [name, jwk] of Object.entries(others)) providers[name] = provider(jwk).callback();
};

const sign = async (claims) =>
  new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: key.kid }).sign(await importJWK(key, 'RS256'));

const base64url = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

// What is wrong with the ID token.
const SPOILERS = {
  // Signed again as it is: nothing.
  nothing: sign,
  audience: (claims) => sign({ ...claims, aud: 'somebody-else' }),
  'more-audiences': (claims) => sign({ ...claims, aud: [CLIENT, 'somebody-else'] }),
  'foreign-party': (claims) => sign({ ...claims, azp: 'somebody-else' }),
  // The address, but not that it is verified.
  'not-said': ({ email_verified, ...claims }) => sign(claims),
  // By a key that is not named.
  nameless: async (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'RS256' }).sign(await importJWK(key, 'RS256')),
  nonce: (claims) => sign({ ...claims, nonce: 'of another sign-in' }),
  'no-nonce': ({ nonce, ...claims }) => sign(claims),
  issuer: (claims) => sign({ ...claims, iss: 'https://login.example.com' }),
  expired: (claims) => sign({ ...claims, exp: claims.iat - 3_600 }),
  'access-token': (claims) => sign({ ...claims, at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }),
  subject: (claims) => sign({ ...claims, sub: 'x'.repeat(256) }),
  unsigned: (claims) => `${base64url({ alg: 'none' })}.${base64url(claims)}.`,
  'shared-secret': (claims) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(SECRET)),
  'no-token': () => undefined,
};

// Changes an answer on its way out.
const change = (response, how) => {
  const end = response.end.bind(response);
  response.end = async (body) => {
    const changed = JSON.stringify(await how(JSON.parse(body)));
    response.setHeader('content-length', Buffer.byteLength(changed));
    end(changed);
  };
};

const spoilToken = async (answer) => {
  if (answer.id_token) answer.id_token = await SPOILERS[state.spoil](decodeJwt(answer.id_token));
  return answer;
};

// With other members; those that are null are left out.
const merged = (answer, members) =>
  Object.fromEntries(Object.entries({ ...answer, ...members }).filter(([, value]) => value !== null));

const configure = async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { rotate, ...changes } = JSON.parse(Buffer.concat(chunks).toString() || '{}');
  Object.assign(state, changes);
  if (rotate) key = newKey(`key-${(number += 1)}`);
  if (rotate || 'redirect' in changes || 'inIdToken' in changes) build();
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(counts));
};

const handle = (request, response) => {
  const path = request.url.split('?')[0];
  if (path === '/test') return configure(request, response);
  counts[path] = (counts[path] ?? 0) + 1;
  const isOfToken = path === '/token';
  const isSpoiled = path === state.at;
  // Nobody answers: to anything, or to the code alone.
  if (state.spoil === 'silent' || (state.spoil === 'silent-token' && isOfToken)) return undefined;
  if (isSpoiled && state.spoil === 'endless') {
    response.setHeader('content-type', 'application/json');
    const fill = () => {
      while (response.write(' '.repeat(65_536)));
    };
    response.on('drain', fill);
    return fill();
  }
  if (isSpoiled && state.spoil === 'redirect') {
    response.writeHead(307, { location: `${issuer}/elsewhere` });
    return response.end();
  }
  if (isSpoiled && state.spoil === 'broken') {
    response.writeHead(500);
    return response.end();
  }
  if (isOfToken && state.spoil in SPOILERS) change(response, spoilToken);
  if (path === '/me') change(response, (answer) => merged(answer, state.user));
  const isOfMetadata = path.startsWith('/.well-known/');
  if (isOfMetadata) change(response, (answer) => merged(answer, state.metadata));
  if (path === PATH_OF_KEYS && state.nameless) {
    change(response, ({ keys }) => ({ keys: keys.map(({ kid, ...jwk }) => jwk) }));
  }
  const isPublic = path === PATH_OF_KEYS || isOfMetadata;
  return providers[!isPublic && state.spoil in providers ? state.spoil : 'true'](request, response);
};

const server = certificate
  ? createTls({ cert: readFileSync(certificate), key: readFileSync(keyFile) }, handle)
  : createPlain(handle);
server.listen(Number(port), '127.0.0.1', () => {
  issuer = `${certificate ? 'https' : 'http'}://127.0.0.1:${server.address().port}`;
  build();
  console.log(server.address().port);
});
