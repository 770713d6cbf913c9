// Makes the short domain resolve to the edge under test, in this process only.
//
// The SDK speaks to `https://<short domain>` on port 443 through Node's own
// `fetch`, which opens its connections with `tls.connect`. Only the address and
// the port of the connection change; the server name, the `Host` header, the
// certificate check and every byte of the request stay as the SDK makes them.

import tls from 'node:tls'
import { required } from './steps.mjs'

const domain = required('WAYMARK_SHORT_DOMAIN').toLowerCase()
const edgePort = Number(required('WAYMARK_EDGE_TLS_PORT'))
const edgeHost = process.env.WAYMARK_EDGE_TLS_HOST ?? '127.0.0.1'

const connect = tls.connect
tls.connect = function (...args) {
  const [options] = args
  const meant = typeof options === 'object' && options !== null &&
    String(options.host ?? options.hostname).toLowerCase() === domain &&
    Number(options.port || 443) === 443
  if (!meant) return connect.apply(this, args)
  const servername = options.servername || domain
  const moved = { ...options, host: edgeHost, hostname: edgeHost, port: edgePort, servername }
  return connect.call(this, moved, ...args.slice(1))
}
