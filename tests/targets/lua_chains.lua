-- Knows the chain of functions of each of its allocations by take_block of lua_chains.c, as debug.getinfo has it, and writes
-- {chain: [calls, bytes]} to the file "chains", and to "chains.child" in a fork. lua_chains.lua LIBRARY NAME [wait|few]; few:
-- less of all, where each allocation is a stop.
local library, name, is_few = arg[1], arg[2], arg[3] == "few"
local take_block = package.loadlib(library, "take_block")
local chains, callers, names = {}, {}, {}
local resume_real, running, getinfo = coroutine.resume, coroutine.running, debug.getinfo

-- The name of a function is that by which it was called first.
local function name_of(info)
  local key = info.source .. info.linedefined
  if not names[key] then
    local base = info.short_src:match("[^/]*$")
    local known = info.name and info.name ~= "?" and info.namewhat ~= "metamethod" and info.namewhat ~= "hook"
    names[key] = info.what == "main" and "{main}" or known and info.name or ("<%s:%d>"):format(base, info.linedefined)
  end
  return names[key]
end

local kept = setmetatable({}, {__mode = "k"}) -- {function: its name, false: in C}: most of what is allocated is what getinfo returns

local function add_frames(list, thread, level)
  while true do
    local info = thread and getinfo(thread, level, "fl") or not thread and getinfo(level, "fl")
    if not info then
      return
    end
    local called = kept[info.func]
    if called == nil then
      local all = thread and getinfo(thread, level, "nS") or getinfo(level, "nS")
      called = all.what ~= "C" and name_of(all)
      kept[info.func] = called
    end
    if called then
      list[#list + 1] = called .. ":" .. info.currentline
    end
    level = level + 1
  end
end

local function obtain(bytes)
  local list = {}
  take_block(bytes); add_frames(list, nil, 2)
  for i = #callers, 1, -1 do
    add_frames(list, callers[i], 0)
  end
  local chain = table.concat(list, "<")
  local entry = chains[chain] or {0, 0}
  chains[chain] = entry
  entry[1], entry[2] = entry[1] + 1, entry[2] + bytes
end

local function resume(thread, ...)
  callers[#callers + 1] = running()
  local result = table.pack(resume_real(thread, ...))
  callers[#callers] = nil
  return table.unpack(result, 1, result.n)
end

local function recurse(depth, bytes)
  if depth > 0 then
    recurse(depth - 1, bytes)
    return
  end
  obtain(bytes)
end

local function tail(depth, bytes)
  if depth == 0 then
    obtain(bytes)
    return 1
  end
  return tail(depth - 1, bytes)
end

local function varied(...)
  local n = select("#", ...)
  obtain(100 + n)
  for i = 1, n do
    obtain(n)
  end
end

local Base = {}
Base.__index = Base
function Base:add(n)
  obtain(200 + n)
  if n > 0 then
    self:add(n - 1)
  end
end

local tricky = setmetatable({}, {
  __index = function(_, key) obtain(300); return key end,
  __newindex = function() obtain(301) end,
  __add = function(a) obtain(302); return a end,
  __call = function(_, n) obtain(303 + n) end,
  __lt = function() obtain(305); return true end,
  __concat = function() obtain(306); return "x" end,
  __len = function() obtain(307); return 1 end,
  __close = function() obtain(308) end,
})

local function metamethods()
  local a = tricky.missing
  tricky.other = 1
  a = tricky + 1
  tricky(1)
  a = tricky < tricky
  a = tricky .. "y"
  a = #tricky
end

local function fail(n)
  obtain(400 + n)
  error({n})
end

local function handler()
  obtain(410)
end

local function errors()
  for i = 1, 3 do
    pcall(fail, i)
    xpcall(fail, handler, i)
    obtain(420)
    pcall(function()
      pcall(fail, 10 + i)
      local x = nil + 1
    end)
    pcall(string.rep) -- fails in C
  end
end

local function callbacks()
  string.gsub("abc", "%w", function(c) obtain(500); return c end)
  table.sort({3, 1, 2, 5, 4}, function(a, b) obtain(510); return a < b end)
  local list = {}
  for i = 1, 30 do
    list[i] = function() obtain(520 + i % 2) end
  end
  for _, f in ipairs(list) do
    f()
  end
  load("local obtain = ... local function inner() obtain(530) end\n\n inner() obtain(531)")(obtain)
end

local function iterate(n)
  local i = 0
  return function()
    i = i + 1
    obtain(600)
    return i <= n and i or nil
  end
end

local function producer(n)
  for i = 1, n do
    obtain(700)
    coroutine.yield(i)
  end
  recurse(2, 701)
end

local function consumer(n)
  local thread = coroutine.create(producer)
  for _ = 1, n do
    resume(thread, n)
    obtain(710)
  end
  resume(thread)
  coroutine.yield()
  obtain(711)
end

local function protected_yield()
  local ok = pcall(function()
    obtain(720)
    coroutine.yield()
    recurse(1, 721)
    pcall(function()
      coroutine.yield()
      obtain(722)
      error("x")
    end)
    obtain(723)
    error("y")
  end)
  obtain(724)
end

local function nest(depth)
  local thread = coroutine.create(function()
    obtain(730 + depth)
    if depth > 0 then
      nest(depth - 1)
    end
    coroutine.yield()
    recurse(depth, 740)
  end)
  resume(thread)
  obtain(750)
  resume(thread)
end

local function coroutines()
  local list = {}
  for i = 1, 3 do
    list[i] = coroutine.create(consumer)
    resume(list[i], 3)
  end
  for i = 3, 1, -1 do
    resume(list[i])
  end
  local thread = coroutine.create(protected_yield)
  for _ = 1, 3 do
    resume(thread)
    obtain(760)
  end
  nest(3)
  nest(is_few and 2 or 8) -- more than pads know of
  for i = 1, is_few and 4 or 100 do -- short-lived ones, in memory that is used again
    local short = coroutine.create(producer)
    resume(short, 1)
    if i % 2 == 0 then
      resume(short)
    end
  end
  collectgarbage()
end

local function short_lived()
  for i = 1, is_few and 6 or 60 do
    local f = load(("\n"):rep(i % 7) .. ("local obtain = ... local function f%d() obtain(800) end f%d() obtain(801)"):format(i % 5, i % 5),
                   "@short" .. i % 5 .. ".lua")
    f(obtain)
    if i % 10 == 0 then
      f = nil
      collectgarbage()
    end
  end
end

local function collected()
  for i = 1, 20 do
    setmetatable({}, {__gc = function() obtain(900) end})
  end
  collectgarbage()
  collectgarbage()
end

local function hooked()
  debug.sethook(function() debug.sethook(); obtain(910) end, "", 10)
  for i = 1, 20 do end
  debug.sethook()
end

local function to_be_closed()
  if _VERSION ~= "Lua 5.3" then
    load("local tricky, obtain = ... local function closes() local x <close> = tricky; obtain(920) end closes()", "@closed.lua")(tricky, obtain)
  end
end

local function work(n)
  recurse(n, 1000 + n)
  tail(3, 1010)
  varied(1, 2, 3)
  varied()
  Base.add(setmetatable({}, Base), 3)
  metamethods()
  errors()
  callbacks()
  for i in iterate(3) do
    obtain(610)
  end
  coroutines()
  to_be_closed()
  hooked()
end

local function write(path)
  local out, parts = assert(io.open(path, "w")), {}
  for chain, entry in pairs(chains) do
    parts[#parts + 1] = ('"%s": [%d, %d]'):format(chain:gsub('"', "'"), entry[1], entry[2])
  end
  out:write("{", table.concat(parts, ",\n"), "}\n")
  out:close()
end

recurse(1, 1)
if arg[3] == "wait" then
  print("ready")
  io.stdout:flush()
  io.read()
  chains = {} -- what was allocated before an attach is not in its recording
end
work(2)
short_lived()
collected()
recurse(is_few and 40 or 300, 1100) -- the stack of values moves
if not is_few then
  work(5)
end
if package.loadlib(library, "fork_now")() == 0 then
  chains = {}
  recurse(3, 1200)
  work(1)
  write(name .. ".child")
  package.loadlib(library, "kill_self")()
end
package.loadlib(library, "wait_for_child")()
recurse(1, 1300)
write(name)
