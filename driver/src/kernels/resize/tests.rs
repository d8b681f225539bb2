//! Lines against pixel by pixel.

use super::*;
use crate::kernels::simd::Isa;
use crate::kernels::testing::Numbers;
use crate::scratch::Scratch;
use crate::stop::Stop;

fn shapes() -> impl Iterator<Item = Resize> {
    let alignments = [Alignment::Edges, Alignment::Corners, Alignment::Centres];
    let sizes = [(1, 1), (3, 7), (7, 3), (8, 8), (5, 20)];
    let channels = [1, 3, 16, 17, 40];
    alignments.into_iter().flat_map(move |alignment| {
        sizes.into_iter().flat_map(move |(input, output)| {
            channels.into_iter().map(move |channels| Resize {
                batches: 2,
                height: ResizeAxis { input, output, alignment },
                width: ResizeAxis { input: input + 1, output: output + 2, alignment },
                channels,
            })
        })
    })
}

fn compare<T: Copy + Default + PartialEq + std::fmt::Debug>(
    random: impl Fn(&mut Numbers, usize) -> Vec<T>,
    load: impl Fn(T) -> f32,
    store: impl Fn(f32) -> T,
    lines: impl Fn(&Resize, &[T], usize, &mut Work<'_>, &mut [T]),
) {
    let numbers = &mut Numbers::new(1);
    for resize in shapes() {
        assert!(fits(&resize));
        let pixels = resize.height.input * resize.width.input;
        let input = random(numbers, resize.batches * pixels * resize.channels);
        let line = resize.width.output * resize.channels;
        let mut want = vec![T::default(); resize.batches * resize.height.output * line];
        let weighted = &mut vec![0.0; resize.bilinear_scratch()];
        let work = (weighted.as_mut_slice(), Stop::default());
        resize.bilinear(&input, &mut want, work, (&load, &store)).unwrap();
        // In two parts, as threads would take them.
        let mut got = vec![T::default(); want.len()];
        let middle = resize.height.output;
        let (first, second) = got.split_at_mut(middle * line);
        let mut scratch = Scratch::default();
        lines(&resize, &input, 0, &mut Work::new(&resize, &mut scratch).unwrap(), first);
        lines(&resize, &input, middle, &mut Work::new(&resize, &mut scratch).unwrap(), second);
        assert_eq!(got, want, "{resize:?}");
    }
}

pub(crate) fn floats(isa: Isa) {
    compare(
        Numbers::small_floats,
        |x| x,
        |x| x,
        |resize, input, first, work, out| {
            super::floats(isa, resize, input, first, work, out);
        },
    );
}

pub(crate) fn bytes(isa: Isa) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mix of bytes")]
    let store = |x: f32| (x + 0.5) as u8;
    compare(Numbers::bytes, f32::from, store, |resize, input, first, work, out| {
        super::bytes(isa, resize, input, first, work, out);
    });
}

pub(crate) fn signed(isa: Isa) {
    let numbers = &mut Numbers::new(1);
    for resize in shapes() {
        let pixels = resize.height.input * resize.width.input;
        let input = numbers.bytes(resize.batches * pixels * resize.channels);
        let input: Vec<i8> = input.into_iter().map(u8::cast_signed).collect();
        let line = resize.width.output * resize.channels;
        let mut want = vec![0; resize.batches * resize.height.output * line];
        resize.bilinear_fixed(&input, &mut want, Stop::default()).unwrap();
        let mut got = vec![0x55; want.len()];
        let middle = resize.height.output;
        let (first, second) = got.split_at_mut(middle * line);
        let mut scratch = Scratch::default();
        let work = &mut FixedWork::new(&resize, &mut scratch).unwrap();
        super::signed(isa, &resize, &input, 0, work, first);
        super::signed(isa, &resize, &input, middle, work, second);
        assert_eq!(got, want, "{resize:?}");
    }
}
