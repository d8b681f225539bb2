//! Looking at a word that another CPU writes, so that what the word announces is fetched together with it.
//!
//! Who polls a counter and then reads a message waits for two cache lines, one after the other: the CPU expects a loop of looks to
//! go on, so it begins on nothing that comes after it while the counter is on its way. Here it expects the
//! opposite. A look is a call of a function that returns to its caller where the word has moved, and elsewhere where it has not. CPUs expect
//! every function to return to its caller, and begin on what the caller does next: reading the message. Where the word has not moved,
//! that work is thrown away.
//!
//! A look at a line that is still here must throw it away before the message's lines are asked for, or they
//! would be taken from the CPU that is about to write them. So where the caller reads next depends on some multiplications, whose
//! result is zero: longer than such a look takes, and shorter than one at a line that is on its way.
//!
//! Figures: `docs/decisions/0053-a-reader-looks-ahead.md`.

#![allow(unsafe_code, reason = "a return to elsewhere")]

use std::num::NonZeroU32;
use std::sync::atomic::AtomicU64;

/// Permission to look so, where the CPU and the system let a function return to elsewhere.
#[derive(Debug, Clone, Copy)]
pub struct LookAhead(());

impl LookAhead {
    /// `None` on other CPUs than x86-64, and in a process with shadow stacks: there a function may return to its caller only.
    #[must_use]
    pub fn new() -> Option<LookAhead> {
        instructions::may_return_elsewhere().then_some(LookAhead(()))
    }

    /// Looks at `word` until it is not `seen` any more, at most so often; gives whether it is not. Each look is a relaxed load.
    ///
    /// `position` stays what it is, but where the word has moved the CPU knows it only somewhat later: what is read there, and nowhere else,
    /// is fetched together with the word.
    #[inline(always)]
    pub fn has_moved(
        self,
        word: &AtomicU64,
        seen: u64,
        looks: NonZeroU32,
        position: &mut u64,
    ) -> bool {
        instructions::has_moved(self, word, seen, looks, position)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod instructions {
    use std::arch::asm;

    use super::{AtomicU64, LookAhead, NonZeroU32};

    /// Whether this thread has no shadow stack. What a process is to have is settled before its `main`.
    pub(super) fn may_return_elsewhere() -> bool {
        let shadow_stack: u64;
        // SAFETY: changes one register, and not even that where there is no shadow stack (`rdsspq rax`, which older CPUs
        // take for an instruction that does nothing).
        unsafe {
            asm!(
                ".byte 0xf3, 0x48, 0x0f, 0x1e, 0xc8",
                inout("rax") 0_u64 => shadow_stack,
                options(nomem, nostack, preserves_flags),
            );
        }
        shadow_stack == 0
    }

    #[inline(always)]
    pub(super) fn has_moved(
        _: LookAhead,
        word: &AtomicU64,
        seen: u64,
        looks: NonZeroU32,
        position: &mut u64,
    ) -> bool {
        // SAFETY: loads the word atomically (it is aligned, and lives as long as its reference), and adds zero to `position`, which is
        // ours alone: zero times zero, four times. Each `call` has one `ret`, which takes what it pushed from the stack (the block is
        // not `nostack`), whichever of two addresses of this block it goes on at; that it may is what a `LookAhead` stands for.
        // All changed registers are named.
        unsafe {
            asm!(
                "2:",
                "call 4f",
                // Expected: it has moved. Four multiplications of three cycles each.
                "xor {late:e}, {late:e}",
                "imul {late}, {late}",
                "imul {late}, {late}",
                "imul {late}, {late}",
                "imul {late}, {late}",
                "add [{position}], {late}",
                "jmp 5f",
                // Returned to where it has not.
                "3:",
                "dec {looks:e}",
                "jnz 2b",
                "jmp {unmoved}",
                // The function.
                "4:",
                "lea {elsewhere}, [rip + 3b]",
                "mov {late}, [rsp]",
                "cmp [{word}], {seen}",
                "cmove {late}, {elsewhere}",
                "mov [rsp], {late}",
                "ret",
                "5:",
                word = in(reg) word,
                seen = in(reg) seen,
                looks = inout(reg) looks.get() => _,
                position = in(reg) position,
                late = out(reg) _,
                elsewhere = out(reg) _,
                unmoved = label { return false },
            );
        }
        true
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
mod instructions {
    use std::sync::atomic::Ordering;

    use super::{AtomicU64, LookAhead, NonZeroU32};

    pub(super) fn may_return_elsewhere() -> bool {
        false
    }

    /// Nobody has a `LookAhead` here; the same without looking ahead.
    pub(super) fn has_moved(
        _: LookAhead,
        word: &AtomicU64,
        seen: u64,
        looks: NonZeroU32,
        _: &mut u64,
    ) -> bool {
        (0..looks.get()).any(|_| word.load(Ordering::Relaxed) != seen)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const LOOKS: NonZeroU32 = NonZeroU32::new(3).unwrap();

    /// The kernel says of a thread whether it has a shadow stack.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[test]
    fn it_is_there_unless_returns_are_watched() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let features = status.lines().find(|line| line.starts_with("x86_Thread_features:"));
        let has_shadow_stack = features.is_some_and(|line| line.contains("shstk"));
        assert_eq!(LookAhead::new().is_some(), !has_shadow_stack);
    }

    #[test]
    fn it_finds_a_word_that_has_moved_and_gives_up_on_one_that_has_not() {
        let Some(ahead) = LookAhead::new() else { return };
        let word = AtomicU64::new(7);
        for round in 0..10_000 {
            let mut position = round;
            assert!(!ahead.has_moved(&word, 7, LOOKS, &mut position));
            assert!(ahead.has_moved(&word, 8, LOOKS, &mut position));
            assert!(ahead.has_moved(&word, 7 + (1 << 63), LOOKS, &mut position), "all 64 bits");
            assert_eq!(position, round, "nothing is added to it");
        }
    }

    #[test]
    fn it_sees_what_another_thread_stores() {
        let Some(ahead) = LookAhead::new() else { return };
        let (there, back) = (AtomicU64::new(0), AtomicU64::new(0));
        let wait = |word: &AtomicU64, seen| {
            let mut position = seen;
            while !ahead.has_moved(word, seen, LOOKS, &mut position) {
                std::thread::yield_now();
            }
            assert_eq!(position, seen);
            // Acquire: pairs with Release of the other thread's stores.
            word.load(Ordering::Acquire)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for turn in 0..1_000 {
                    assert_eq!(wait(&there, turn), turn + 1);
                    back.store(turn + 1, Ordering::Release);
                }
            });
            for turn in 0..1_000 {
                there.store(turn + 1, Ordering::Release);
                assert_eq!(wait(&back, turn), turn + 1);
            }
        });
    }

    #[test]
    fn calls_around_it_return_to_where_they_came_from() {
        fn nested(ahead: LookAhead, word: &AtomicU64, depth: u64) -> u64 {
            let mut position = depth;
            let moved = ahead.has_moved(word, depth % 2, LOOKS, &mut position);
            let deeper = if depth == 0 { 0 } else { nested(ahead, word, depth - 1) };
            deeper + u64::from(moved) + std::hint::black_box(position - depth)
        }
        let Some(ahead) = LookAhead::new() else { return };
        assert_eq!(nested(ahead, &AtomicU64::new(0), 199), 100);
    }
}
