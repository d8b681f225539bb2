//! What headers are bound to.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use burst_hal::CancelWord;

use super::*;

const TOKEN: [u8; CACHE_TOKEN_BYTES] = [3; CACHE_TOKEN_BYTES];
const BOUND: Bound<'_> = Bound { device: "cpu", version: "1", options: "fast", build: "a1b2" };

fn key() -> CacheKey {
    CacheKey::new([1; CacheKey::BYTES])
}

fn seal(
    key: &CacheKey,
    bound: Bound<'_>,
    token: &[u8; CACHE_TOKEN_BYTES],
    user: Option<u32>,
) -> Seal {
    let caller = Caller::new(&CancelWord::default());
    let caller = user.map_or(caller.clone(), |user| caller.with_user(user));
    Seal::new(key, bound, token, &caller)
}

fn header(kind: Kind) -> Header {
    let options = PrepareOptions {
        preference: ExecutionPreference::SustainedSpeed,
        priority: Priority::High,
        deadline: None,
    };
    let digest = blake3::hash(b"what follows");
    Header { kind, options, list_bytes: 65, value_bytes: 7, digest }
}

#[test]
fn what_was_sealed_is_opened_by_the_same_seal() {
    let seal = seal(&key(), BOUND, &TOKEN, Some(7));
    let (bytes, mac) = seal.seal(&header(Kind::Model), None);
    assert_eq!(seal.open(Kind::Model, &bytes, None).unwrap(), (header(Kind::Model), mac));
    assert_eq!(header(Kind::Model).extent(), Some((128, 135)));
    let (data, _) = seal.seal(&header(Kind::Data), Some(&mac));
    assert_eq!(seal.open(Kind::Data, &data, Some(&mac)).unwrap().0, header(Kind::Data));
    let endless = Header { list_bytes: u64::MAX, ..header(Kind::Model) };
    assert_eq!(endless.extent(), None);
}

#[test]
fn no_bit_of_a_header_can_be_another() {
    let seal = seal(&key(), BOUND, &TOKEN, None);
    let (bytes, _) = seal.seal(&header(Kind::Model), None);
    let foreign = CacheError::Foreign { kind: Kind::Model };
    for bit in 0..8 * HEADER_BYTES {
        let mut changed = bytes;
        changed[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(seal.open(Kind::Model, &changed, None).unwrap_err(), foreign, "bit {bit}");
    }
}

#[test]
fn a_header_of_anything_else_is_foreign() {
    let (model, mac) = seal(&key(), BOUND, &TOKEN, Some(7)).seal(&header(Kind::Model), None);
    let (data, _) = seal(&key(), BOUND, &TOKEN, Some(7)).seal(&header(Kind::Data), Some(&mac));
    let mut flipped = TOKEN;
    flipped[31] ^= 0x80;
    let others = [
        ("key", seal(&CacheKey::new([2; CacheKey::BYTES]), BOUND, &TOKEN, Some(7))),
        ("device", seal(&key(), Bound { device: "cpu-quant", ..BOUND }, &TOKEN, Some(7))),
        ("version", seal(&key(), Bound { version: "2", ..BOUND }, &TOKEN, Some(7))),
        ("options", seal(&key(), Bound { options: "plain", ..BOUND }, &TOKEN, Some(7))),
        ("build", seal(&key(), Bound { build: "a1b3", ..BOUND }, &TOKEN, Some(7))),
        ("texts", seal(&key(), Bound { device: "cpu1", version: "", ..BOUND }, &TOKEN, Some(7))),
        ("token", seal(&key(), BOUND, &flipped, Some(7))),
        ("user", seal(&key(), BOUND, &TOKEN, Some(8))),
        ("no user", seal(&key(), BOUND, &TOKEN, None)),
    ];
    for (what, other) in &others {
        let foreign = CacheError::Foreign { kind: Kind::Model };
        assert_eq!(other.open(Kind::Model, &model, None).unwrap_err(), foreign, "{what}");
        let foreign = CacheError::Foreign { kind: Kind::Data };
        assert_eq!(other.open(Kind::Data, &data, Some(&mac)).unwrap_err(), foreign, "{what}");
    }
    let same = seal(&key(), BOUND, &TOKEN, Some(7));
    for (kind, bytes, partner) in [
        (Kind::Data, &model, None),
        (Kind::Model, &data, Some(&mac)),
        (Kind::Data, &data, None),
        (Kind::Data, &data, Some(&blake3::hash(b"another model"))),
    ] {
        let foreign = CacheError::Foreign { kind };
        assert_eq!(same.open(kind, bytes, partner).unwrap_err(), foreign, "{kind} {partner:?}");
    }
}
