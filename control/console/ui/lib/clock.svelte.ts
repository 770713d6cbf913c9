// The time by the minute, while somebody looks: what shows "until now" is loaded again by it.

const MINUTE_MS = 60_000

let minute = $state(Date.now())
export const clock = { get minute () { return minute } }

function tick () {
  if (!document.hidden && Date.now() - minute >= MINUTE_MS) minute = Date.now()
}
setInterval(tick, 5_000)
document.addEventListener('visibilitychange', tick)
