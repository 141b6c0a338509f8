-- Dissects the datagrams of plait's prototype transport (packets.py documents the format), by their content:
--     tshark -X lua_script:plait-prototype.lua -r FILE.pcapng -Y plait_prototype

local prototype = Proto("plait_prototype", "plait prototype transport")
local kinds = {[1] = "OPEN", [2] = "OPENED", [3] = "DATA", [4] = "ACK", [5] = "REPAIR"}
local fields = {
  kind = ProtoField.uint8("plait_prototype.kind", "Kind", base.DEC, kinds),
  path = ProtoField.uint8("plait_prototype.path", "Path"),
  connection = ProtoField.uint32("plait_prototype.connection", "Connection"),
  time = ProtoField.double("plait_prototype.time", "Time of the request (s)"),
  length = ProtoField.uint16("plait_prototype.length", "Length of the data"),
  number = ProtoField.uint32("plait_prototype.number", "Packet number"),
  sequence = ProtoField.uint64("plait_prototype.sequence", "Offset in the stream"),
  covers = ProtoField.uint32("plait_prototype.covers", "Bytes of the stream in the block"),
  data = ProtoField.bytes("plait_prototype.data", "Data"),
  delay = ProtoField.uint32("plait_prototype.delay", "ACK delay (us)"),
  next = ProtoField.uint64("plait_prototype.next", "First missing byte"),
  limit = ProtoField.uint64("plait_prototype.limit", "End of the receive window"),
  first = ProtoField.uint32("plait_prototype.first", "First packet of a range"),
  last = ProtoField.uint32("plait_prototype.last", "Last packet of a range"),
}
prototype.fields = fields

local OPEN_BYTES, DATA_HEAD, REPAIR_HEAD, ACK_HEAD, RANGE_BYTES, MAX_RANGES = 16, 20, 24, 28, 8, 32

local function belongs(buffer)
  local size = buffer:len()
  if size < OPEN_BYTES then return false end
  local kind, count = buffer(0, 1):uint(), buffer(2, 2):uint()
  if kind == 1 or kind == 2 then return size == OPEN_BYTES and count == 0 end
  if kind == 3 then return size == DATA_HEAD + count end
  if kind == 5 then return count > 0 and size == REPAIR_HEAD + count end
  return kind == 4 and count >= 1 and count <= MAX_RANGES and size == ACK_HEAD + count * RANGE_BYTES
end

local function dissect(buffer, packet, root)
  if not belongs(buffer) then return false end
  local kind, path = buffer(0, 1):uint(), buffer(1, 1):uint()
  local tree = root:add(prototype, buffer())
  tree:add(fields.kind, buffer(0, 1))
  tree:add(fields.path, buffer(1, 1))
  tree:add(fields.connection, buffer(4, 4))
  local info = kinds[kind] .. " path " .. path
  if kind <= 2 then
    tree:add(fields.time, buffer(8, 8))
  elseif kind == 3 then
    local length = buffer(2, 2):uint()
    tree:add(fields.length, buffer(2, 2))
    tree:add(fields.number, buffer(8, 4))
    tree:add(fields.sequence, buffer(12, 8))
    if length > 0 then tree:add(fields.data, buffer(DATA_HEAD, length)) end
    info = info .. ", packet " .. buffer(8, 4):uint() .. ", "
    info = info .. (length == 0 and "probe" or length .. " bytes from " .. tostring(buffer(12, 8):uint64()))
  elseif kind == 5 then
    tree:add(fields.length, buffer(2, 2))
    tree:add(fields.number, buffer(8, 4))
    tree:add(fields.sequence, buffer(12, 8))
    tree:add(fields.covers, buffer(20, 4))
    tree:add(fields.data, buffer(REPAIR_HEAD))
    info = info .. ", packet " .. buffer(8, 4):uint() .. ", parity of " .. buffer(20, 4):uint()
    info = info .. " bytes from " .. tostring(buffer(12, 8):uint64())
  else
    tree:add(fields.delay, buffer(8, 4))
    tree:add(fields.next, buffer(12, 8))
    tree:add(fields.limit, buffer(20, 8))
    for place = ACK_HEAD, buffer:len() - RANGE_BYTES, RANGE_BYTES do
      tree:add(fields.first, buffer(place, 4))
      tree:add(fields.last, buffer(place + 4, 4))
    end
    info = info .. ", packets to " .. buffer(ACK_HEAD + 4, 4):uint()
    info = info .. ", next byte " .. tostring(buffer(12, 8):uint64())
  end
  packet.cols.protocol = "PLAIT"
  packet.cols.info = info
  return true
end

prototype:register_heuristic("udp", dissect)
