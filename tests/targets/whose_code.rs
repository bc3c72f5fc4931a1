// whose_code [TIMES]: a closure that is inlined into the thread's start, methods of the standard
// library that are inlined or generic. Prints as whose_code.cpp does.
use std::io::Write;
use std::thread;

fn say(line: u32, what: &str, n: usize) {
    writeln!(std::io::stderr(), "site whose_code.rs:{} {} {}", line, what, n).unwrap();
}

fn main() {
    let times: usize = std::env::args().nth(1).map_or(1, |s| s.parse().unwrap());
    let n = 125000 * times;
    let started = thread::spawn(move || {
        let mut v: Vec<u64> = Vec::new();
        v.reserve_exact(n); say(line!(), "live", n * 8);
        v.push(1);
        v
    });
    let v = started.join().unwrap();
    let s = "abcdefg".repeat(100000 * times); say(line!(), "live", s.len());
    std::mem::forget((v, s));
}
