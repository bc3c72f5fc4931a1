// Loses cycles of reference-counted nodes, through functions of the standard library that are inlined.
use std::cell::RefCell;
use std::rc::Rc;

struct Node {
    name: String,
    peers: RefCell<Vec<Rc<Node>>>,
}

fn main() {
    for i in 0..50 {
        let first = Rc::new(Node { name: format!("node number {}", i), peers: RefCell::new(vec![]) });
        let second = Rc::new(Node { name: String::from("peer"), peers: RefCell::new(vec![first.clone()]) });
        first.peers.borrow_mut().push(second.clone());
        assert!(first.name != second.name);
    }
}
