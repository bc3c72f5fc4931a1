// A closure that is inlined into generic functions of the standard library, compiled without debug
// information.
fn main() {
    let grown = std::thread::spawn(move || {
        let mut grown: Vec<Vec<u8>> = Vec::new();
        for i in 0..100 {
            grown.push(vec![1u8; 1001 + i]);
        }
        grown
    });
    std::mem::forget(grown.join().unwrap());
}
