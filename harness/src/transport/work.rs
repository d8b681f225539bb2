//! The work of a round trip, the same for every peer: the client writes a request whose first word
//! is new, the server reads every word of it and answers with sequence and sum, the client checks
//! the whole answer.
//!
//! It is meant to cost next to nothing, as it is part of what is measured, for the peers and not for
//! the floors. So messages are made and looked at in whole words: who stores a word and then loads
//! a wider piece around it, as a comparison of 64 bytes does, waits until the store has reached the
//! cache.

use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::error::HarnessError;
use crate::transport::case::ANSWER_BYTES;

/// Bytes of a word.
const WORD: usize = 8;

/// An answer as it travels.
pub type AnswerBytes = [u8; ANSWER_BYTES];

/// A request that is made again and again with another sequence number.
#[derive(Debug)]
pub struct Request {
    bytes: Vec<u8>,
    /// The sum of all words but the first.
    rest: u64,
}

impl Request {
    /// A request of `len` bytes, a whole number of words and at least one.
    #[must_use]
    pub fn new(len: usize) -> Request {
        let words = (len / WORD).max(1);
        let mut bytes = Vec::with_capacity(words * WORD);
        for word in 0..words as u64 {
            bytes.extend_from_slice(&pattern(word).to_le_bytes());
        }
        let rest = sum(&bytes[WORD..]);
        Request { bytes, rest }
    }

    /// Makes it the request with this number.
    #[inline]
    pub fn renew(&mut self, sequence: u64) {
        self.bytes[..WORD].copy_from_slice(&sequence.to_le_bytes());
    }

    /// What is sent.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether this is the answer to request number `sequence`, in all of its words.
    ///
    /// # Errors
    /// [`HarnessError::WrongAnswer`].
    #[inline]
    pub fn check(&self, sequence: u64, answer: &AnswerBytes) -> Result<(), HarnessError> {
        check_answer(sequence, self.rest.wrapping_add(sequence), answer)
    }
}

/// Whether this is the answer with that sequence and that sum, in all of its words.
///
/// # Errors
/// [`HarnessError::WrongAnswer`].
#[inline]
pub fn check_answer(sequence: u64, sum: u64, answer: &AnswerBytes) -> Result<(), HarnessError> {
    let (got, _) = answer.as_chunks::<WORD>();
    let differs = got
        .iter()
        .zip(reply_words(sequence, sum))
        .fold(0, |differs, (got, expected)| differs | (u64::from_le_bytes(*got) ^ expected));
    if differs == 0 {
        return Ok(());
    }
    Err(explain(sequence, answer, &reply(sequence, sum)))
}

/// The answer to a request: reads every word of it.
#[inline]
#[must_use]
pub fn answer(request: &[u8]) -> AnswerBytes {
    let sequence = request.first_chunk::<WORD>().map_or(0, |word| u64::from_le_bytes(*word));
    reply(sequence, sum(request))
}

/// An answer: sequence, sum, and words that follow from them.
#[inline]
#[must_use]
pub fn reply(sequence: u64, sum: u64) -> AnswerBytes {
    let mut bytes = [0; ANSWER_BYTES];
    let (words, _) = bytes.as_chunks_mut::<WORD>();
    for (to, word) in words.iter_mut().zip(reply_words(sequence, sum)) {
        *to = word.to_le_bytes();
    }
    bytes
}

#[inline]
fn reply_words(sequence: u64, sum: u64) -> [u64; ANSWER_BYTES / WORD] {
    let mut words = std::array::from_fn(|n| sum.wrapping_add(n as u64));
    words[..2].copy_from_slice(&[sequence, sum]);
    words
}

/// The wrapping sum of all words.
#[inline]
#[must_use]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<WORD>();
    words.iter().fold(0, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

#[cold]
fn explain(sequence: u64, answer: &AnswerBytes, expected: &AnswerBytes) -> HarnessError {
    let (got, wanted) = (answer.as_chunks::<WORD>().0, expected.as_chunks::<WORD>().0);
    let word = got.iter().zip(wanted).position(|(a, b)| a != b).unwrap_or(0);
    HarnessError::WrongAnswer {
        sequence,
        word,
        got: u64::from_le_bytes(got[word]),
        expected: u64::from_le_bytes(wanted[word]),
    }
}

/// Distinct, not small, and no two alike: a word left out or read twice changes the sum.
fn pattern(word: u64) -> u64 {
    (word + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Works for so long, as a driver would: without sleeping.
#[inline]
pub fn serve_for(service: Duration) {
    if service.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < service {
        std::hint::spin_loop();
    }
}

/// Bytes that the other work of a cold run reads and writes: more than the caches hold that a core has to itself.
const OTHER_BYTES: usize = 8 << 20;
/// How long it takes at least.
const OTHER_WORK: Duration = Duration::from_millis(5);

/// What an application does between two stretches of messages: work with data of its own, after which caches and
/// predictors know nothing of a queue.
pub fn other_work() {
    let mut data = vec![1_u64; OTHER_BYTES / WORD];
    let begin = Instant::now();
    while begin.elapsed() < OTHER_WORK {
        let mut last = 0_u64;
        for word in &mut data {
            last = word.rotate_left(7).wrapping_add(last);
            *word = last;
        }
        black_box(&mut data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_right_answer_is_accepted_and_every_wrong_word_is_named() {
        let mut request = Request::new(256);
        request.renew(77);
        let right = answer(request.bytes());
        request.check(77, &right).unwrap();
        for word in 0..8 {
            let mut wrong = right;
            wrong[word * 8] ^= 1;
            let error = request.check(77, &wrong).unwrap_err();
            assert!(
                matches!(error, HarnessError::WrongAnswer { sequence: 77, word: w, .. } if w == word),
                "{error}"
            );
        }
        assert!(request.check(78, &right).is_err(), "the answer to another request");
    }

    #[test]
    fn a_server_that_skips_a_word_is_found_out() {
        let mut request = Request::new(1024);
        request.renew(5);
        for word in 0..128 {
            let mut skipped = request.bytes().to_vec();
            skipped[word * 8..word * 8 + 8].fill(0);
            assert!(request.check(5, &answer(&skipped)).is_err(), "word {word}");
        }
    }
}
