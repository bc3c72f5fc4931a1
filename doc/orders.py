"""Keeps orders, and a list of those that are late."""
import json


def make_orders(n):
    return [json.dumps({"id": i, "city": "Bremen", "note": "x" * (i % 50)}) for i in range(n)]


class Shop:
    def open(self):
        self.orders = make_orders(20000)
        self.late = [json.loads(order) for order in self.orders if "9" in order]


shop = Shop()
shop.open()
