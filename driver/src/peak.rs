//! What one thread of this machine can do at best, measured.

use std::time::{Duration, Instant};

use crate::Isa;
use crate::kernels::peak;

/// Multiplications that one thread adds up in a second where nothing else holds it up: what kernels cannot
/// exceed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Peak {
    /// Of floats.
    pub floats_per_s: f64,
    /// Of stored values of 8 bits.
    pub bytes_per_s: f64,
}

/// How long one measurement takes at least.
const MEASURED: Duration = Duration::from_millis(2);
/// The best of so many counts: whatever else runs on the core makes others slower.
const MEASUREMENTS: u32 = 5;

impl Peak {
    /// Measures it with these instruction sets. Takes some ten milliseconds.
    #[must_use]
    pub fn measure(isa: Isa) -> Peak {
        Peak {
            floats_per_s: best(|rounds| peak::floats(isa, rounds)),
            bytes_per_s: best(|rounds| peak::bytes(isa, rounds)),
        }
    }
}

/// Products per second of work that says how many it did in so many rounds.
fn best(work: impl Fn(u32) -> u64) -> f64 {
    let mut rounds = 1_000;
    let measure = |rounds| {
        let start = Instant::now();
        let products = work(rounds);
        (products, start.elapsed())
    };
    while measure(rounds).1 < MEASURED && rounds < u32::MAX / 2 {
        rounds *= 2;
    }
    let rates = (0..MEASUREMENTS).map(|_| {
        let (products, took) = measure(rounds);
        #[expect(clippy::cast_precision_loss, reason = "a rate")]
        let products = products as f64;
        products / took.as_secs_f64().max(1e-9)
    });
    rates.fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_of_instructions_adds_up_as_many_products_as_it_says() {
        for isa in Isa::each_here() {
            assert_eq!(peak::floats(isa, 10) % 10, 0, "{isa:?}");
            assert_eq!(peak::floats(isa, 20), 2 * peak::floats(isa, 10), "{isa:?}");
            assert_eq!(peak::bytes(isa, 20), 2 * peak::bytes(isa, 10), "{isa:?}");
        }
    }

    #[test]
    fn there_is_a_peak() {
        let Peak { floats_per_s, bytes_per_s } = Peak::measure(Isa::detect());
        assert!(floats_per_s > 1e6 && bytes_per_s > 1e6);
    }
}
