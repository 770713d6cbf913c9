//! The Redis scripts, each of which is atomic.
//!
//! Every key that a script uses carries its shard's tag, so in a cluster it runs on the node of the shard.

/// Writes only if the guard has the value that the publisher wrote last.
///
/// `KEYS`: the guard, then the keys to write. `ARGV`: the expected guard, the new guard, then a value for each key,
/// empty for a deletion. Returns the guard's present value: the new one means that everything is written, by this
/// call or by one whose reply was lost.
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

/// Begins a rebuild over any existing view, unless a publisher of a higher term wrote it.
///
/// `KEYS`: meta, the guard of the rebuild. `ARGV`: the term, the incomplete meta, the guard's first value. Returns
/// the current meta.
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
