-- For wrk, one thread: send the requests of a file in turn, and print one line of JSON at the end.
--
--     wrk -t1 … -s requests.lua URL -- FILE FIRST STATUS
--
-- FILE    one request per line: path, a tab, body (empty for none); the method follows from the body
-- FIRST   which line comes first, from 0; after the last line the first one follows
-- STATUS  what every answer should be; answers with another status are counted apart, "-" does not look
local requests, place, answers = {}, 0, {}
local threads = {}

function setup(thread)
  table.insert(threads, thread)
end

function init(arguments)
  for line in io.lines(arguments[1]) do
    local path, body = line:match("^([^\t]*)\t(.*)$")
    if body == "" then
      table.insert(requests, wrk.format("GET", path))
    else
      table.insert(requests, wrk.format("POST", path, nil, body))
    end
  end
  place = tonumber(arguments[2]) % #requests
  unexpected = 0
  local expected = tonumber(arguments[3])
  if expected ~= nil then
    response = function(status)
      if status ~= expected then
        unexpected = unexpected + 1
      end
    end
  end
end

function request()
  place = place % #requests + 1
  return requests[place]
end

function done(summary, latency)
  local broken = summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout
  local refused = summary.errors.status
  for _, thread in ipairs(threads) do
    refused = math.max(refused, thread:get("unexpected"))
  end
  io.write(string.format(
    'figures {"requests": %d, "seconds": %.6f, "p50_ms": %.3f, "p99_ms": %.3f, "unexpected": %d, "broken": %d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, refused, broken
  ))
end
