//! A 64-bit hash of bytes: FarmHash's `Fingerprint64`, whose results never change between versions
//! or machines. LSH_PROJECTION is defined by it.
//!
//! Inputs are read as little-endian words that overlap where the length is no multiple of a word;
//! all arithmetic wraps.

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

/// A pair of running sums.
type Pair = (u64, u64);

/// The fingerprint of `bytes`.
pub(super) fn fingerprint64(bytes: &[u8]) -> u64 {
    match bytes.len() {
        0 => K2,
        1..=3 => up_to_3(bytes),
        4..=7 => {
            let (first, last) = (word32(bytes, 0), word32(bytes, bytes.len() - 4));
            mix(length(bytes).wrapping_add(first << 3), last, length_multiplier(bytes))
        }
        8..=16 => up_to_16(bytes),
        17..=32 => up_to_32(bytes),
        33..=64 => up_to_64(bytes),
        _ => over_64(bytes),
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u64::from_le_bytes)
}

fn word32(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(<[u8]>::first_chunk).copied().map_or(0, u32::from_le_bytes);
    u64::from(word)
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

fn length_multiplier(bytes: &[u8]) -> u64 {
    K2.wrapping_add(length(bytes).wrapping_mul(2))
}

/// Folds the high bits into the low ones.
fn fold(x: u64) -> u64 {
    x ^ x >> 47
}

/// Two words into one.
fn mix(a: u64, b: u64, multiplier: u64) -> u64 {
    let once = fold((a ^ b).wrapping_mul(multiplier));
    fold((b ^ once).wrapping_mul(multiplier)).wrapping_mul(multiplier)
}

fn sum(terms: &[u64]) -> u64 {
    terms.iter().fold(0, |sum, term| sum.wrapping_add(*term))
}

fn up_to_3(bytes: &[u8]) -> u64 {
    let byte = |at: usize| u64::from(bytes[at]);
    let (len, last) = (bytes.len(), bytes.len() - 1);
    let front = byte(0) + (byte(len >> 1) << 8);
    let back = length(bytes) + (byte(last) << 2);
    fold(front.wrapping_mul(K2) ^ back.wrapping_mul(K0)).wrapping_mul(K2)
}

fn up_to_16(bytes: &[u8]) -> u64 {
    let multiplier = length_multiplier(bytes);
    let a = word(bytes, 0).wrapping_add(K2);
    let b = word(bytes, bytes.len() - 8);
    let c = b.rotate_right(37).wrapping_mul(multiplier).wrapping_add(a);
    let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(multiplier);
    mix(c, d, multiplier)
}

/// The two words that 17 to 64 bytes are first reduced to.
fn ends(bytes: &[u8], first_factor: u64) -> Pair {
    let multiplier = length_multiplier(bytes);
    let a = word(bytes, 0).wrapping_mul(first_factor);
    let b = word(bytes, 8);
    let c = word(bytes, bytes.len() - 8).wrapping_mul(multiplier);
    let d = word(bytes, bytes.len() - 16).wrapping_mul(K2);
    let y = sum(&[a.wrapping_add(b).rotate_right(43), c.rotate_right(30), d]);
    let z = sum(&[a, b.wrapping_add(K2).rotate_right(18), c]);
    (y, z)
}

fn up_to_32(bytes: &[u8]) -> u64 {
    let (y, z) = ends(bytes, K1);
    mix(y, z, length_multiplier(bytes))
}

fn up_to_64(bytes: &[u8]) -> u64 {
    let (multiplier, len) = (length_multiplier(bytes), bytes.len());
    let (y, z) = ends(bytes, K2);
    let z = mix(y, z, multiplier);
    let e = word(bytes, 16).wrapping_mul(multiplier);
    let f = word(bytes, 24);
    let g = y.wrapping_add(word(bytes, len - 32)).wrapping_mul(multiplier);
    let h = z.wrapping_add(word(bytes, len - 24)).wrapping_mul(multiplier);
    mix(
        sum(&[e.wrapping_add(f).rotate_right(43), g.rotate_right(30), h]),
        sum(&[e, f.wrapping_add(word(bytes, 0).wrapping_mul(K2)).rotate_right(18), g]),
        multiplier,
    )
}

/// 56 bytes of state that blocks of 64 bytes go into.
struct State {
    x: u64,
    y: u64,
    z: u64,
    v: Pair,
    w: Pair,
}

impl State {
    fn block(&mut self, block: &[u8], multiplier: u64, w_factor: u64, v_factor: u64) {
        let State { x, y, z, v, w } = self;
        *x = sum(&[*x, *y, v.0, word(block, 8)]).rotate_right(37).wrapping_mul(multiplier);
        *y = sum(&[*y, v.1, word(block, 48)]).rotate_right(42).wrapping_mul(multiplier);
        *x ^= w.1.wrapping_mul(w_factor);
        *y = sum(&[*y, v.0.wrapping_mul(v_factor), word(block, 40)]);
        *z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(multiplier);
        *v = weak(block, v.1.wrapping_mul(multiplier), x.wrapping_add(w.0));
        let second = block.get(32..).unwrap_or_default();
        *w = weak(second, z.wrapping_add(w.1), y.wrapping_add(word(block, 16)));
        std::mem::swap(z, x);
    }
}

/// A quick hash of 32 bytes with two seeds.
fn weak(bytes: &[u8], a: u64, b: u64) -> Pair {
    let [w, x, y, z] = [0, 8, 16, 24].map(|at| word(bytes, at));
    let a = a.wrapping_add(w);
    let b = sum(&[b, a, z]).rotate_right(21);
    let high = sum(&[a, x, y]);
    (high.wrapping_add(z), sum(&[b, high.rotate_right(44), a]))
}

fn over_64(bytes: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut state = State {
        x: SEED.wrapping_mul(K2).wrapping_add(word(bytes, 0)),
        y,
        z: fold(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2),
        v: (0, 0),
        w: (0, 0),
    };
    // The last block overlaps the one before it, and is never empty.
    let blocks = (bytes.len() - 1) / 64;
    for block in bytes.chunks_exact(64).take(blocks) {
        state.block(block, K1, 1, 1);
    }
    let multiplier = K1.wrapping_add((state.z & 0xff) << 1);
    let rest = (length(bytes) - 1) & 63;
    state.w.0 = state.w.0.wrapping_add(rest);
    state.v.0 = state.v.0.wrapping_add(state.w.0);
    state.w.0 = state.w.0.wrapping_add(state.v.0);
    state.block(&bytes[bytes.len() - 64..], multiplier, 9, 9);
    let State { x, y, z, v, w } = state;
    mix(
        sum(&[mix(v.0, w.0, multiplier), fold(y).wrapping_mul(K0), z]),
        mix(v.1, w.1, multiplier).wrapping_add(x),
        multiplier,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the original C++ library gives for the bytes `1, 8, 15, ...` modulo 128, for lengths on
    /// both sides of every boundary.
    #[test]
    fn fingerprints_of_every_kind_of_length() {
        for (len, want) in [
            (0u8, 0x9ae1_6a3b_2f90_404f),
            (1, 0x47a2_4c13_b17e_583e),
            (2, 0xc34a_76ef_c5c0_6952),
            (3, 0x26b4_da35_6b8b_9558),
            (4, 0xefc8_3e8c_71df_5af5),
            (7, 0x1faf_a9ed_d289_ae25),
            (8, 0xd442_a22f_eec8_439a),
            (12, 0x4bbf_2b58_e806_a1eb),
            (16, 0x0db0_c6c6_cfc9_cc97),
            (17, 0x33fc_e0be_f0c3_17a9),
            (24, 0xf712_65cd_685e_88e4),
            (32, 0xc6ca_63b8_b559_bf7b),
            (33, 0x9ebe_f488_4026_e414),
            (48, 0xc9ed_f3ca_7d59_f311),
            (64, 0xa7b5_bdc8_8b7f_abba),
            (65, 0x1446_78fd_7e38_ce83),
            (100, 0x2888_d538_07d1_216c),
            (128, 0xfdf9_6c95_4126_4ee4),
            (129, 0x7158_d68c_dc61_948d),
            (192, 0xa36e_d8e1_4170_57f3),
            (200, 0x2909_ca25_8172_5e4e),
        ] {
            let bytes: Vec<u8> =
                (0..len).map(|i| i.wrapping_mul(7).wrapping_add(1) % 128).collect();
            assert_eq!(fingerprint64(&bytes), want, "{len} bytes");
        }
    }
}
