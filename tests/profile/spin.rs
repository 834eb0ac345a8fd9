// The same in Rust, with a generic and a slice of arrays, whose name has a semicolon.
use std::hint::black_box;

trait Price {
    fn price(&self) -> u64;
}

impl Price for [u32; 4] {
    #[inline(never)]
    fn price(&self) -> u64 {
        let mut count = 0;
        for i in 2..self[3] {
            let mut is_prime = true;
            let mut j = 2;
            while j * j <= i && is_prime {
                is_prime = i % j != 0;
                j += 1;
            }
            count += is_prime as u64;
        }
        count
    }
}

#[inline(never)]
fn serve<T: Price + ?Sized>(what: &T) -> ! {
    let mut sum = 0;
    loop {
        sum += black_box(what.price());
        black_box(sum);
    }
}

fn main() {
    serve(&[1u32, 2, 3, 4000]);
}
