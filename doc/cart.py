"""Keeps 6,000 things in 20 carts, for doc/languages.md."""


class Cart:
    def add(self, i):
        self.items.append(bytes(2000 + i))

    def fill(self):
        self.items = []
        for i in range(300):
            self.add(i)


def main():
    carts = [Cart() for _ in range(20)]
    for cart in carts:
        cart.fill()


main()
