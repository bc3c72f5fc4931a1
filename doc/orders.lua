local Shop = {}
Shop.__index = Shop

local function make_order(i)
  return string.format("order %d: %s", i, string.rep("x", 90 + i % 20))
end

function Shop.open()
  local self = setmetatable({orders = {}, late = {}}, Shop)
  for i = 1, 20000 do
    self.orders[i] = make_order(i)
    if i % 3 == 0 then
      self.late[#self.late + 1] = {id = i, text = self.orders[i]:upper()}
    end
  end
  return self
end

shop = Shop.open()
print(#shop.orders .. " orders, " .. #shop.late .. " of them late")
