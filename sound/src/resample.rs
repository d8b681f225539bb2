//! Another sampling rate, by a sinc under a window: each new sample is a weighted sum of the old
//! ones around it.

use std::f64::consts::PI;

/// Zero crossings of the sinc to each side: 60 dB and a narrow transition.
const CROSSINGS: f64 = 24.0;
/// The part of the lower of both rates' bands that passes unharmed.
const BAND: f64 = 0.95;
/// Shape of the Kaiser window: side lobes of about -80 dB.
const BETA: f64 = 8.0;

/// Samples at `to` per second, at most `max_samples` of them; both rates were checked.
pub(crate) fn resample(samples: &[f32], from: u32, to: u32, max_samples: usize) -> Vec<f32> {
    let wanted = samples.len() as u128 * u128::from(to) / u128::from(from.max(1));
    let count = usize::try_from(wanted).unwrap_or(max_samples).min(max_samples);
    let step = f64::from(from) / f64::from(to);
    let cutoff = BAND * (1.0 / step).min(1.0);
    let reach = CROSSINGS / cutoff;
    (0..count).map(|index| one(samples, position(index, from, to), cutoff, reach)).collect()
}

/// Where new sample `index` lies among the old ones: exact, also after hours.
fn position(index: usize, from: u32, to: u32) -> (usize, f64) {
    let scaled = index as u128 * u128::from(from);
    let whole = usize::try_from(scaled / u128::from(to)).unwrap_or(usize::MAX);
    let rest = u32::try_from(scaled % u128::from(to)).unwrap_or(0);
    (whole, f64::from(rest) / f64::from(to))
}

fn one(samples: &[f32], (whole, part): (usize, f64), cutoff: f64, reach: f64) -> f32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 24 000")]
    let reach_samples = reach.ceil() as usize;
    let first = whole.saturating_sub(reach_samples);
    let last = whole.saturating_add(reach_samples + 1).min(samples.len());
    let mut sum = 0.0;
    for (at, sample) in samples.iter().enumerate().take(last).skip(first) {
        let distance = signed_distance(at, whole) - part;
        sum += f64::from(*sample) * cutoff * sinc(cutoff * distance) * kaiser(distance / reach);
    }
    #[expect(clippy::cast_possible_truncation, reason = "a sample is a float")]
    let sample = sum as f32;
    sample
}

fn signed_distance(at: usize, from: usize) -> f64 {
    let distance = |a: usize, b: usize| f64::from(u32::try_from(a - b).unwrap_or(u32::MAX));
    if at >= from { distance(at, from) } else { -distance(from, at) }
}

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (PI * x).sin() / (PI * x) }
}

/// The Kaiser window over -1 to 1.
fn kaiser(x: f64) -> f64 {
    if x.abs() >= 1.0 { 0.0 } else { bessel(BETA * (1.0 - x * x).sqrt()) / bessel(BETA) }
}

/// The modified Bessel function of order 0, by its power series.
fn bessel(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..=32 {
        term *= quarter / f64::from(k * k);
        sum += term;
    }
    sum
}
