// Words of short domains: their proofs and what they serve.
import { block, type PlainOf } from '../lib/i18n.svelte'

export const en = {
  age: 'Redirects are kept for', ageOf: 'Seconds for which redirects of {domain} are kept', seconds: 's', notKept: 'not kept', ageSaved: 'Saved',
  ageConflict: 'Somebody else changed this meanwhile; it is now: {now}. What you typed is still here; save again to replace it.',
  ageHint: 'Seconds from 0 to 86,400 for which browsers and shared caches may keep a redirect; empty: they must not. Whoever keeps one asks no edge: its scans are not counted, and a change, a pause or a take-down is seen that much later.',
  mayNot: 'Your role does not show short domains.', host: 'A host of your own, such as go.example.com', claim: 'Claim the host', state: 'State', pages: 'Visitors’ pages', pagesOfAll: 'Visitors’ pages of all domains',
  pending: 'Waits for its proof', verified: 'Verified', unproven: 'Proof is gone', refused: 'Another account has it', platform: 'given by the platform',
  pendingHint: 'No links can be made on it before a proof is found.', verifiedHint: 'Links can be made on it.', unprovenHint: 'Its links go on, and no new ones can be made.', refusedHint: 'Another account has proven it.',
  proof: 'Proof', proofHint: 'Either is enough, and it must stay: it is looked for every day.', recordName: 'TXT record: name', recordValue: 'TXT record: text', fileUrl: 'Or a file at', fileContent: 'The file holds',
  checkedAt: 'Last looked for', nextCheckAt: 'Looked for again', endsAt: 'The claim ends, if it is not proven', opensAt: 'Open to other accounts', notFound: 'No proof was found', verify: 'Look now', verifyHint: 'A claim can be looked at every 10 seconds.',
  serves: 'What it serves beside links', robots: 'Robots (/robots.txt)', robotsNone: 'may look at nothing', robotsAll: 'may look at every link',
  digitalLinks: 'GS1 Digital Links', digitalLinksOff: 'are not resolved', digitalLinksOn: 'are resolved', digitalLinksHint: 'Paths such as /01/09506000134352 lead where the links of products lead. What is changed here is done in the background.',
  assetLinks: 'Android: assetlinks.json', association: 'iOS: apple-app-site-association', jsonHint: 'JSON; empty: there is no such file.', noJson: 'This is no JSON: {why}',
  prefix: 'Prefix of paths', prefixHint: 'Links are at https://{domain}/{prefix}/… too; empty: at the short id alone.', inUrls: 'Short URLs and new codes have the prefix',
  segments: 'Short ids may have several segments', segmentsHint: 'such as sale/2026/shoes. It stays once the domain has links. Upgrade every edge first.',
  conflict: 'Somebody else changed this meanwhile. What you typed is still here; save again to replace what is shown below.', changedBy: 'Changed {when} by {who}.', saved: 'Saved', nobody: 'none',
  certificate: 'Certificate', certificateHint: 'Ordered and renewed by itself, and sent to every edge.', certificatePending: 'Is being ordered', certificateValid: 'Valid', certificateFailed: 'Failed', certificateOff: 'Switched off',
  issuer: 'Issued by', notAfter: 'Ends', nextTry: 'Ordered next', certificateWhy: 'The last try failed', order: 'Order now', orderHint: 'A certificate can be asked for every 10 minutes.', switchOff: 'Switch off', switchOn: 'Switch on', switchOffReally: 'Take the certificate of {domain} from the edges',
  release: 'Remove the domain', releaseReally: 'Remove {domain}', releaseHint: 'A domain on which links were made stays: their codes may be printed.'
} as const

export const domains = await block(en, { de: async () => (await import('./domains.de')).de })
/** Keys of messages without a value in them, for tables. */
export type DomainKey = PlainOf<typeof en>
