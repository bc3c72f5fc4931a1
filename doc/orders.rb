# Keeps orders as text, and an index of them.
def make_order(i)
  "order #{i} " + "x" * 100
end

def make_orders(n)
  (1..n).map { |i| make_order(i) }
end

class Shop
  def open
    @orders = make_orders(20_000)
    @index = @orders.each_with_index.to_h { |order, i| [i, order.upcase] }
  end
end

Shop.new.open
