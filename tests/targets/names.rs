// Names as Rust makes them: generics, traits, closures, modules. Sizes as in massif_cases.c.
use std::hint::black_box;

mod shapes {
    pub trait Make {
        fn make(&self, n: usize) -> Vec<u8>;
    }
    pub struct Plain;
    pub struct Nested<T>(pub T);
    impl Make for Plain {
        #[inline(never)]
        fn make(&self, n: usize) -> Vec<u8> {
            super::black_box(Vec::with_capacity(n))
        }
    }
    impl<T: Make> Make for Nested<T> {
        #[inline(never)]
        fn make(&self, n: usize) -> Vec<u8> {
            super::black_box(self.0.make(n))
        }
    }
}

use shapes::{Make, Nested, Plain};

#[inline(never)]
fn generic<T: Make, const N: usize>(maker: &T) -> Vec<u8> {
    black_box(maker.make(N))
}

#[inline(never)]
fn by_closure(f: &dyn Fn(usize) -> Box<[u64]>) -> Box<[u64]> {
    black_box(f(12))
}

fn main() {
    let a = generic::<_, 96>(&Plain);
    let b = generic::<_, 160>(&Nested(Nested(Plain)));
    let c = by_closure(&|n| vec![0u64; n].into_boxed_slice());
    black_box((&a, &b, &c));
}
