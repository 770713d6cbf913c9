//! What runs inside Redis: each script is one step that happens whole or not at all.
//!
//! Every key that a script takes carries its shard's tag, so that in a cluster it runs where the shard is.

/// Compares the guard with what the publisher last wrote, and only then writes.
///
/// `KEYS`: the guard, then what is written. `ARGV`: the expected guard, the new guard, then a value for each
/// key, empty for a deletion. Answers what the guard is now: the new text says that all of it is done, be
/// it by this very call or by one whose answer was lost.
pub(super) const ADVANCE: &str = r"
local guard = redis.call('GET', KEYS[1])
if guard ~= ARGV[1] then return guard or '' end
for i = 2, #KEYS do
  if ARGV[i + 1] == '' then
    redis.call('DEL', KEYS[i])
  else
    redis.call('SET', KEYS[i], ARGV[i + 1])
  end
end
redis.call('SET', KEYS[1], ARGV[2])
return ARGV[2]
";

/// Begins a rebuild: whatever stands there, unless a publisher of a higher term wrote it.
///
/// `KEYS`: meta, the guard of the rebuild. `ARGV`: the term, the incomplete meta, the guard's first text.
/// Answers what meta is now.
pub(super) const CLAIM: &str = r"
local meta = redis.call('GET', KEYS[1])
if meta then
  local term = string.match(meta, '^w%d+ %S+ (%d+) ')
  if term and tonumber(term) > tonumber(ARGV[1]) then return meta end
end
redis.call('SET', KEYS[1], ARGV[2])
redis.call('SET', KEYS[2], ARGV[3])
return ARGV[2]
";

/// Removes some of a shard's records during a rebuild.
///
/// `KEYS`: the guard. `ARGV`: the expected guard, the new guard, the pattern of the records, the cursor.
/// Answers the guard, the next cursor (`0` at the end, empty when nothing was done) and the server, since a
/// cursor means nothing to another one.
pub(super) const CLEAR: &str = r"
local guard = redis.call('GET', KEYS[1])
if guard ~= ARGV[1] then return {guard or '', '', ''} end
local server = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)') or ''
local found = redis.call('SCAN', ARGV[4], 'MATCH', ARGV[3], 'COUNT', 500)
for _, key in ipairs(found[2]) do redis.call('UNLINK', key) end
redis.call('SET', KEYS[1], ARGV[2])
return {ARGV[2], found[1], server}
";
