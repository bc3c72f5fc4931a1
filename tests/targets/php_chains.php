<?php
/* Allocates by str_repeat(), and knows the chain of PHP functions of each call: writes {chain: [calls, bytes]} as JSON to the
   file argv[1], and for a forked child to argv[1] . ".child". A chain is "function:line<function:line...", the innermost
   first; 0 is the line of PHP's own functions. Bytes are those that str_repeat() takes from malloc with USE_ZEND_ALLOC=0. If argv[2] is "wait",
   it begins when a line comes on standard input. */
$chains = [];

function note($size) {
    global $chains;
    $names = [];
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    foreach ($trace as $i => $frame) {
        $next = $trace[$i + 1] ?? ["function" => "{main}"];
        $name = in_array($next["function"], ["include", "eval"]) ? "{main}" : $next["function"];
        $names[] = (isset($next["class"]) ? $next["class"] . "::" : "") . $name . ":" . ($frame["line"] ?? 0);
    }
    $chain = implode("<", $names);
    $chains[$chain] = [($chains[$chain][0] ?? 0) + 1, ($chains[$chain][1] ?? 0) + $size + 32];
    return $size;
}

function obtain($size) {
    note($size); return str_repeat("x", $size);
}

function recurse($depth, $size) {
    if ($depth == 0)
        return obtain($size);
    return recurse($depth - 1, $size);
}

trait Priced {
    function price() {
        obtain(1520);
        return array_map(fn($i) => obtain(1521), [1, 2]);
    }
}

class Shop implements IteratorAggregate, ArrayAccess {
    use Priced;
    private $goods;
    function __construct($n) {
        for ($i = 0; $i < $n; $i++)
            $this->goods[] = obtain(1500 + $i);
    }
    static function open() {
        return new static(2);
    }
    function __toString() {
        obtain(1530);
        return "shop";
    }
    function __call($name, $arguments) {
        return obtain(1531);
    }
    static function __callStatic($name, $arguments) {
        return obtain(1532);
    }
    function getIterator(): Iterator {
        yield obtain(1533);
        yield from [1, 2];
    }
    function offsetExists($i): bool { return true; }
    function offsetGet($i): mixed { return obtain(1534); }
    function offsetSet($i, $v): void { obtain(1535); }
    function offsetUnset($i): void {}
    function __destruct() {
        obtain(1536);
    }
}

function count_to($n) {
    for ($i = 0; $i < $n; $i++) {
        obtain(1600 + $i);
        yield $i;
    }
    obtain(1610);
}

function throws($depth) {
    if ($depth == 0) {
        obtain(1300);
        throw new RuntimeException;
    }
    try {
        throws($depth - 1);
    } catch (RuntimeException $e) {
        obtain(1301);
        throw $e;
    } finally {
        obtain(1302);
    }
}

function callbacks() {
    $shop = Shop::open();
    $shop->price();
    $text = "$shop";
    $shop->missing();
    Shop::none();
    foreach ($shop as $x)
        obtain(1540);
    $shop[1] = $shop[2];
    $list = [3, 1, 2];
    usort($list, function ($a, $b) { obtain(1550); return $a - $b; });
    call_user_func([$shop, "price"]);
    call_user_func_array("obtain", [1551]);
    (new ReflectionMethod("Shop", "price"))->invoke($shop);
    array_walk($list, "obtain_each");
    preg_replace_callback("/b/", fn($m) => strlen(obtain(1553)), "abb");
    $bound = Closure::fromCallable([$shop, "price"]);
    $bound();
    array_sum(iterator_to_array((function () { yield strlen(obtain(1554)); })()));
    eval("\n\nobtain(1555);");
    unset($shop, $bound);
    try {
        throws(3);
    } catch (RuntimeException $e) {
        obtain(1303);
    }
}

function obtain_each($value, $key) {
    obtain(1552);
}

function short_lived() {
    for ($i = 0; $i < 40; $i++) {
        $f = eval(str_repeat("\n", $i % 7) . "return function (\$n) {\n  obtain(1700 + \$n);\n};");
        $f($i % 3);
        unset($f);
    }
}

function fibers() {
    $fiber = new Fiber(function ($n) {
        for ($i = 0; $i < 3; $i++) {
            recurse($i, 1800 + $i);
            Fiber::suspend($i);
        }
        array_map(function ($i) { obtain(1810); Fiber::suspend(); }, [1]);
    });
    $fiber->start(1);
    obtain(1820);
    for ($i = 0; $i < 3; $i++)
        $fiber->resume();
    $inner = new Fiber(fn() => (new Fiber(fn() => obtain(1830)))->start());
    $inner->start();
}

function work($seed) {
    mt_srand($seed);
    for ($i = 0; $i < 200; $i++) {
        switch (mt_rand(0, 4)) {
        case 0: recurse(mt_rand(0, 40), 1900); break;
        case 1: obtain(1901); break;
        case 2: foreach (count_to(mt_rand(0, 4)) as $j) recurse($j, 1902); break;
        case 3: (new Shop(1))->price(); break;
        default: try { throws(2); } catch (RuntimeException $e) { obtain(1903); }
        }
    }
}

if (($argv[2] ?? "") == "wait") {
    echo "ready\n";
    fgets(STDIN);
}
callbacks();
short_lived();
fibers();
recurse(900, 1950);
work(9);
if (function_exists("pcntl_fork")) {
    $child = pcntl_fork();
    if ($child == 0) {
        $chains = []; /* a recording of a forked child has what it allocates itself */
        recurse(3, 1960);
        callbacks();
        file_put_contents($argv[1] . ".child", json_encode($chains));
        posix_kill(getmypid(), SIGKILL);
    }
    pcntl_waitpid($child, $status);
}
file_put_contents($argv[1], json_encode($chains));
