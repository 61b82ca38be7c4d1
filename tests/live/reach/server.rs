// server.rs - has its data in containers of the standard library, which its threads change all the time
//
// Loads the library that the argument names.  A line on stdin has it lose blocks, by functions
// lose_SHAPE; how many these are is on stdout then.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, LinkedList, VecDeque};
use std::ffi::{c_char, c_int, c_void, CString};
use std::io::{BufRead, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
}

#[derive(Default)]
struct Data {
    by_number: BTreeMap<usize, Box<String>>,
    by_name: HashMap<String, Vec<Arc<String>>>,
    queues: LinkedList<VecDeque<String>>,
    calls: Vec<Box<dyn Fn() -> usize + Send>>,
}

fn text(i: usize) -> String {
    format!("a string of number {}", i)
}

fn change(data: &Mutex<Data>, i: usize) {
    let mut d = data.lock().unwrap();
    let shared = Arc::new(text(i));
    let captured = text(i);
    d.by_number.insert(i % 1999, Box::new(text(i)));
    let all = d.by_name.entry(text(i % 997)).or_default();
    all.push(shared.clone());
    all.push(shared);
    if all.len() > 6 {
        all.clear();
    }
    d.queues.push_back(VecDeque::from([text(i), text(i + 1)]));
    if d.queues.len() > 499 {
        d.queues.pop_front();
    }
    d.calls.push(Box::new(move || captured.len()));
    if d.calls.len() > 103 {
        drop(d.calls.swap_remove(i % 103));
    }
}

struct Ring {
    other: RefCell<Option<Rc<Ring>>>,
}

#[inline(never)]
fn lose_ring() -> usize {
    let one = Rc::new(Ring { other: RefCell::new(None) });
    let two = Rc::new(Ring { other: RefCell::new(Some(one.clone())) });
    *one.other.borrow_mut() = Some(two);
    2
}

#[inline(never)]
fn lose_boxes() -> usize {
    let all: Vec<Box<usize>> = (0..31).map(Box::new).collect();
    std::mem::forget(all);
    32
}

#[inline(never)]
fn lose_leaked() -> usize {
    let leaked: &'static mut String = Box::leak(Box::new(text(7)));
    leaked.make_ascii_uppercase();
    2
}

#[inline(never)]
fn scrub() {
    let room = std::hint::black_box([0u8; 65536]);
    std::hint::black_box(&room);
}

fn main() {
    let data = Arc::new(Mutex::new(Data::default()));
    for first in 0..2 {
        let of_thread = data.clone();
        std::thread::spawn(move || {
            for i in (first..).step_by(2) {
                change(&of_thread, i);
                if i % 64 < 2 {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }
        });
    }
    let name = CString::new(std::env::args().nth(1).expect("a library")).unwrap();
    if unsafe { dlopen(name.as_ptr(), 2) }.is_null() {
        std::process::exit(98);
    }
    let mut out = std::io::stdout();
    writeln!(out, "ready").unwrap();
    for _ in std::io::stdin().lock().lines() {
        let lost = lose_ring() + lose_boxes() + lose_leaked();
        scrub();
        writeln!(out, "{}", lost).unwrap();
        out.flush().unwrap();
    }
}
