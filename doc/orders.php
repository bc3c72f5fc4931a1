<?php
// Keeps orders as text, and an index of them.
function make_order($i) {
    return "order $i " . str_repeat("x", 100);
}

function make_orders($n) {
    return array_map("make_order", range(1, $n));
}

class Shop {
    private $orders, $index;
    function open() {
        $this->orders = make_orders(20000);
        $this->index = array_map(fn($order) => [$order, strtoupper($order)], $this->orders);
    }
}

$shop = new Shop;
$shop->open();
