import json

orders = [{"id": i, "who": "customer %d" % (i % 700), "lines": [[i + k, 3.5 * k] for k in range(i % 25)]}
          for i in range(20000)]
text = json.dumps(orders)
del orders
copy = json.loads(text)
del text
by_customer = {}
for order in copy:
    by_customer.setdefault(order["who"], []).append(order)
del copy
totals = {who: sum(price for o in them for _, price in o["lines"]) for who, them in by_customer.items()}
while by_customer:
    by_customer.popitem()
