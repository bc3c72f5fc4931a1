// Like owned.c, with containers of Rust's standard library: each line on standard input names a variable, which is
// emptied; the answer is "BLOCKS BYTES", as many as were freed, by malloc_usable_size. Memory is cleared when it is
// allocated: what has not been written yet, as the rest of a vector, would have pointers of earlier blocks.
#![allow(static_mut_refs)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::c_void;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

extern "C" {
    fn calloc(count: usize, size: usize) -> *mut c_void;
    fn free(p: *mut c_void);
    fn malloc_usable_size(p: *mut c_void) -> usize;
    fn read(fd: i32, p: *mut c_void, size: usize) -> isize;
    fn write(fd: i32, p: *const c_void, size: usize) -> isize;
}

static FREED_BLOCKS: AtomicUsize = AtomicUsize::new(0);
static FREED_BYTES: AtomicUsize = AtomicUsize::new(0);

struct Counting;

unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        calloc(1, layout.size()) as *mut u8
    }
    unsafe fn dealloc(&self, p: *mut u8, _: Layout) {
        FREED_BLOCKS.fetch_add(1, Ordering::Relaxed);
        FREED_BYTES.fetch_add(malloc_usable_size(p as *mut c_void), Ordering::Relaxed);
        free(p as *mut c_void);
    }
}

#[global_allocator]
static GLOBAL: Counting = Counting;

struct Leaf {
    up: RefCell<Weak<Branch>>,
    text: String,
}

struct Branch {
    leaves: RefCell<Vec<Rc<Leaf>>>,
}

struct Node {
    next: Option<Box<Node>>,
    text: Vec<u8>,
}

trait Shape {
    fn area(&self) -> usize;
}
struct Square(Vec<u64>);
struct Circle(Box<u64>);
impl Shape for Square {
    fn area(&self) -> usize {
        self.0.len()
    }
}
impl Shape for Circle {
    fn area(&self) -> usize {
        *self.0 as usize
    }
}

static mut STRINGS: Vec<String> = Vec::new();
static mut BY_NUMBER: BTreeMap<u32, String> = BTreeMap::new();
static mut BY_NAME: Option<HashMap<String, Vec<u32>>> = None;
static mut SET: Option<HashSet<u64>> = None;
static mut QUEUE: VecDeque<Box<u64>> = VecDeque::new();
static mut CHAIN: LinkedList<Vec<u8>> = LinkedList::new();
static mut LIST: Option<Box<Node>> = None;
static mut SHAPES: Vec<Box<dyn Shape>> = Vec::new();
static mut BRANCH: Option<Rc<Branch>> = None;
// both hold the same names
static mut FIRST: Option<Box<(u64, Arc<Vec<String>>)>> = None;
static mut SECOND: Option<Box<(u64, Arc<Vec<String>>)>> = None;
static LOCKED: Mutex<Vec<Box<[u8; 100]>>> = Mutex::new(Vec::new());

fn text(i: usize) -> String {
    format!("{}{}", "t".repeat(10 + i * 7 % 60), i)
}

unsafe fn fill() {
    for i in 0..200 {
        STRINGS.push(text(i));
        BY_NUMBER.insert(i as u32 * 7 % 200, text(i));
        BY_NAME.get_or_insert_with(HashMap::new).insert(text(i), vec![1; i % 9 + 1]);
        SET.get_or_insert_with(HashSet::new).insert(i as u64);
        QUEUE.push_back(Box::new(i as u64));
        CHAIN.push_back(vec![b'x'; i + 1]);
        LIST = Some(Box::new(Node { next: LIST.take(), text: vec![b'n'; i % 30 + 1] }));
        LOCKED.lock().unwrap().push(Box::new([7; 100]));
        SHAPES.push(if i % 2 == 0 { Box::new(Square(vec![1; i + 1])) } else { Box::new(Circle(Box::new(i as u64))) });
    }
    for _ in 0..70 {
        QUEUE.pop_front();
        QUEUE.push_back(Box::new(1)); // it wraps around
    }
    let branch = Rc::new(Branch { leaves: RefCell::new(Vec::new()) });
    for i in 0..50 {
        let leaf = Rc::new(Leaf { up: RefCell::new(Weak::new()), text: text(i) });
        *leaf.up.borrow_mut() = Rc::downgrade(&branch);
        branch.leaves.borrow_mut().push(leaf);
    }
    BRANCH = Some(branch);
    let names = Arc::new((0..30).map(text).collect());
    FIRST = Some(Box::new((1, Arc::clone(&names))));
    SECOND = Some(Box::new((2, names)));
}

unsafe fn drop_named(name: &[u8]) {
    match name {
        b"STRINGS" => STRINGS = Vec::new(),
        b"BY_NUMBER" => BY_NUMBER = BTreeMap::new(),
        b"BY_NAME" => BY_NAME = None,
        b"SET" => SET = None,
        b"QUEUE" => QUEUE = VecDeque::new(),
        b"CHAIN" => CHAIN = LinkedList::new(),
        b"LIST" => {
            while let Some(node) = LIST.take() {
                assert!(!node.text.is_empty());
                LIST = node.next;
            }
        }
        b"SHAPES" => {
            assert!(SHAPES.iter().map(|s| s.area()).sum::<usize>() > 0);
            SHAPES = Vec::new();
        }
        b"BRANCH" => {
            assert!(BRANCH.as_ref().unwrap().leaves.borrow().iter().all(|l| l.up.borrow().upgrade().is_some()
                && !l.text.is_empty()));
            BRANCH = None;
        }
        b"FIRST" => FIRST = None,
        b"SECOND" => SECOND = None,
        b"LOCKED" => *LOCKED.lock().unwrap() = Vec::new(),
        _ => (),
    }
}

/// Without std::io, which would allocate.
unsafe fn say(line: &[u8]) {
    assert!(write(1, line.as_ptr() as *const c_void, line.len()) == line.len() as isize);
}

/// @number in decimal at the end of @to; where it begins.
fn put(to: &mut [u8], end: usize, mut number: usize) -> usize {
    let mut at = end;
    loop {
        at -= 1;
        to[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return at;
        }
    }
}

unsafe fn answer() {
    let mut line = [b' '; 64];
    line[63] = b'\n';
    let bytes = put(&mut line, 63, FREED_BYTES.load(Ordering::Relaxed));
    let start = put(&mut line, bytes - 1, FREED_BLOCKS.load(Ordering::Relaxed));
    say(&line[start..]);
}

fn main() {
    unsafe {
        let mut name = [0u8; 64];
        let mut size = 0;
        fill();
        say(b"ready\n");
        while size < name.len() && read(0, name[size..].as_mut_ptr() as *mut c_void, 1) == 1 {
            size += 1;
            if name[size - 1] != b'\n' {
                continue;
            }
            FREED_BLOCKS.store(0, Ordering::Relaxed);
            FREED_BYTES.store(0, Ordering::Relaxed);
            drop_named(&name[..size - 1]);
            answer();
            size = 0;
        }
    }
}
